"""What the documents show works: Python runs as printed, commands and targets exist."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
CHECKED_ONLY = ("no_run", "walk")
"""The words after ```python for code that is a fragment, or a file of a walk: it has to compile, it is not run."""


def _blocks(language: str) -> list[tuple[str, str, str]]:
    """(page and line, words after the language, code) of each fenced block."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(rf"^```{language}([^\n]*)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            line = text.count("\n", 0, match.start()) + 1
            found.append((f"{page.relative_to(ROOT)}:{line}", match.group(1).strip(), match.group(2)))
    return found


@pytest.mark.parametrize(("place", "words", "code"), _blocks("python"), ids=lambda value: str(value)[:40])
def test_python_in_the_documents_runs(place, words, code, tmp_path):
    compile(code, place, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    if not words.startswith(CHECKED_ONLY):
        run = _run(["-c", code], tmp_path)
        assert run.returncode == 0, f"{place}\n{run.stdout}{run.stderr}"


def _run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_commands_in_the_documents_exist():
    from perdure.cli.main import app

    known = _commands(typer.main.get_command(app))
    for place, _, code in _blocks("(?:bash|console)"):
        for line in re.findall(r"^(?:\$ )?(?:\.venv/bin/)?perdure +(.*)", code, re.MULTILINE):
            words = [word for word in line.split("#")[0].split() if re.fullmatch("[a-z-]+", word)]
            assert any(tuple(words[:length]) in known for length in (1, 2)), f"{place}: perdure {line}"


def _commands(command, above=()):
    names = {above} if above else set()
    for name, child in getattr(command, "commands", {}).items():
        names |= _commands(child, (*above, name))
    return names


def test_the_targets_in_the_documents_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    mentioned = {
        target
        for page in PAGES
        for target in re.findall(r"(?:`|^)(?:\w+=\S+ )*make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert mentioned <= targets, mentioned - targets
