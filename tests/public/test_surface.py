"""What `import perdure` offers."""

import subprocess
import sys

import pytest

import perdure


def test_every_public_name_can_be_had_and_is_listed_once():
    assert sorted(perdure.__all__) == sorted(set(perdure.__all__))
    assert dir(perdure) == sorted(perdure.__all__)
    for name in perdure.__all__:
        assert getattr(perdure, name) is not None


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'perdure' has no attribute 'Nothing'"):
        perdure.Nothing  # noqa: B018


def test_importing_the_package_loads_no_store_and_no_driver():
    program = "import sys, perdure; print([name for name in sys.modules if name.startswith(('apsw', 'perdure.'))])"
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    assert said.stdout.strip() == "[]"


def test_the_package_says_that_it_is_typed():
    from importlib.resources import files

    assert (files("perdure") / "py.typed").is_file()
