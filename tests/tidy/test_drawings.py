"""Pages made from the code say what the code says."""

import importlib.util
import inspect
import re
from types import ModuleType

import pytest

import perdure
from tidy.source_tree import ROOT


@pytest.mark.parametrize(
    ("page", "script", "maker"),
    [
        ("state_machine.md", "draw_state_machine", "draw"),
        ("settings.md", "write_settings", "write"),
        ("metrics.md", "write_metrics", "write"),
    ],
)
def test_the_page_is_what_the_code_says(page, script, maker):
    made = getattr(_load(script), maker)()
    assert (ROOT / "docs" / page).read_text(encoding="utf-8") == made, "run `make docs`"


def test_the_public_names_are_the_documented_ones():
    text = (ROOT / "docs" / "public_names.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE)
    assert sorted(documented) == sorted(perdure.__all__)


def test_the_methods_of_an_app_are_the_documented_ones_in_the_words_of_the_code():
    text = (ROOT / "docs" / "public_names.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `app\.(\w+)` \| (.*) \|$", text, re.MULTILINE)
    methods = {name: each for name, each in vars(perdure.App).items() if not name.startswith("_")}
    told = [(name, inspect.getdoc(each) or "") for name, each in methods.items() if inspect.isfunction(each)]
    assert documented == [(name, doc.splitlines()[0]) for name, doc in told]


def test_the_package_offers_its_public_names_and_nothing_else():
    offered = {
        name for name, value in vars(perdure).items() if not name.startswith("_") and not isinstance(value, ModuleType)
    }
    assert offered <= set(perdure.__all__)
    assert all(hasattr(perdure, name) for name in perdure.__all__)


def test_every_guarantee_names_a_test_that_exists():
    text = (ROOT / "docs" / "guarantees.md").read_text(encoding="utf-8")
    chapters = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert [chapter.split(".")[0] for chapter in chapters] == [str(number) for number in range(1, 11)]
    for chapter in chapters:
        tests = re.findall(r"`(tests/[\w/.]+)`", chapter)
        assert tests, chapter.splitlines()[0]
        for name in tests:
            assert (ROOT / name).exists(), f"guarantee {chapter.split('.')[0]} names {name}"


def test_decisions_are_numbered_and_say_what_they_cost():
    pages = sorted((ROOT / "docs" / "adr").glob("*.md"))
    assert [int(page.name[:4]) for page in pages] == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert re.findall(r"^## (.+)$", text, re.MULTILINE)[:3] == ["Context", "Decision", "What it costs"], page.name


def test_links_between_pages_lead_somewhere():
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    broken = [
        f"{page.relative_to(ROOT)} -> {link}"
        for page in pages
        for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if "://" not in link and not (page.parent / link).exists()
    ]
    assert not broken, "\n".join(broken)


def test_files_that_the_documents_name_exist():
    missing = [
        f"{page.name}: {name}"
        for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
        for name in re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|sql|md|sh|yaml|toml))`", page.read_text(encoding="utf-8"))
        if not any((folder / name).exists() for folder in (ROOT, ROOT / "src" / "perdure", page.parent))
    ]
    assert not missing, "\n".join(missing)


def _load(script: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(script, ROOT / "scripts" / f"{script}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
