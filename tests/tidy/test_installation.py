"""The lock files hold what pyproject.toml asks for, with hashes; `make` alone lists the targets."""

import re
import subprocess
import sys
import tomllib
import zipfile

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from tidy.source_tree import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
GROUPS = PROJECT["dependency-groups"]
RUNTIME = PROJECT["project"]["dependencies"]


@pytest.mark.parametrize(
    ("lock", "wanted"),
    [
        ("requirements.lock", RUNTIME + GROUPS["build"]),
        ("requirements-dev.lock", RUNTIME + GROUPS["build"] + GROUPS["dev"]),
        ("requirements-bench.lock", GROUPS["bench"]),
    ],
)
def test_the_lock_holds_what_is_asked_for(lock, wanted):
    locked = _locked(lock)
    for requirement in map(Requirement, wanted):
        name = requirement.name.lower().replace("_", "-")
        assert name in locked, f"{name} is not in {lock}: run `make lock`"
        assert requirement.specifier.contains(locked[name]), f"{lock} has {name} {locked[name]}: run `make lock`"


@pytest.mark.parametrize("lock", sorted(path.name for path in ROOT.glob("requirements*.lock")))
def test_every_locked_package_has_a_hash(lock):
    entries = re.split(r"\n(?=\S)", (ROOT / lock).read_text(encoding="utf-8"))
    for entry in entries:
        if not entry.startswith("#"):
            assert re.match(r"[a-z0-9-]+==\S+", entry), entry
            assert "--hash=sha256:" in entry, entry


def test_the_development_lock_has_the_versions_of_the_runtime_lock():
    assert _locked("requirements.lock").items() <= _locked("requirements-dev.lock").items()


def _locked(name: str) -> dict[str, Version]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return {name: Version(version) for name, version in re.findall(r"^([a-z0-9-]+)==([^\s;\\]+)", text, re.MULTILINE)}


def test_make_alone_lists_the_targets():
    listing = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for target in ("demo", "dev", "test", "check", "bench", "chaos", "simulate", "mutants", "lock", "clean"):
        assert f"make {target} " in listing


def test_a_wheel_holds_the_package_and_nothing_else(tmp_path):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    [wheel] = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    package = ROOT / "src"
    kept = {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()}
    assert held == {name for name in kept if "__pycache__" not in name}
