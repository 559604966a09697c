"""One noun per concept, files named for what is in them, and nothing that belongs to one machine only."""

import ast
import re

from perdure.domain.states import JobState, TaskState
from tidy.source_tree import ROOT, modules, python_folders, written_files

EMPTY_NAMES = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
GLOSSARY = ROOT / "docs" / "glossary.md"
ROW_NUMBER = re.compile(r"(?<![\w./#&%-])[A-HJ-R][1-9]\d?(?![\w.%-])")
SYSTEM_FOLDERS = {"bin", "dev", "etc", "proc", "sys", "tmp", "usr", "var"}
HTTP_FOLDERS = {"components", "perdure", "problems"}
"""First parts of what looks like a path and is a place in an HTTP API or in its description."""
ABSOLUTE = re.compile(r"(?<![\w.~/:$}*)<>\\-])/([a-z_]+)/[\w.-]+")


def test_files_are_named_for_what_is_in_them():
    offences = [
        module.place
        for folder in python_folders()
        for module in modules(folder)
        if EMPTY_NAMES & set(re.split(r"[/._]", module.place))
    ]
    assert not offences, "\n".join(offences)


def test_the_glossary_has_every_word_once_and_in_order():
    said = [word for word, _ in _glossary()]
    assert said == sorted(set(said))
    assert {"attempt", "duty", "event", "fence", "job", "lane", "lease", "queue", "settlement", "task"} <= set(said)


def test_the_glossary_has_the_states_that_commands_show():
    assert {*TaskState, *JobState} <= {word for word, _ in _glossary()}


def test_names_in_the_code_are_those_of_the_glossary():
    instead = {other: word for word, others in _glossary() for other in others}
    offences = [
        f"{module.place}:{line} {name}: we say {instead[part]}"
        for module in modules()
        for line, name in _defined(module.tree)
        for part in re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower().split("_")
        if part in instead
    ]
    assert not offences, "\n".join(offences)


def _glossary() -> list[tuple[str, list[str]]]:
    """(word, words that we do not say for it) of each row of the glossary."""
    rows = [line.split("|") for line in GLOSSARY.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    return [
        (row[1].strip(), [each.strip() for each in row[3].split(",") if each.strip()])
        for row in rows
        if row[1].strip() != "word"
    ]


def _defined(tree: ast.Module) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append((node.lineno, node.name))
        elif isinstance(node, ast.arg):
            found.append((node.lineno, node.arg))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.append((node.lineno, node.target.id))
    return found


def test_no_numbers_of_a_list_that_readers_do_not_have():
    offences = [
        f"{path.relative_to(ROOT)}:{number} {match.group()}"
        for path in written_files()
        if path.suffix in {".py", ".sql", ".md", ".sh"}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for match in [ROW_NUMBER.search(line)]
        if match and "noqa" not in line
    ]
    assert not offences, "\n".join(offences)


def test_no_paths_of_one_machine():
    offences = [
        f"{path.relative_to(ROOT)}:{number} {match.group()}"
        for path in written_files()
        if not path.is_relative_to(ROOT / "tests") and path.suffix != ".toml"
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for match in ABSOLUTE.finditer(line)
        if match.group(1) not in SYSTEM_FOLDERS | HTTP_FOLDERS
    ]
    assert not offences, "\n".join(offences)


def test_no_address_of_a_registry_in_what_installs():
    for name in ["Makefile", ".ci/run", *(p.name for p in ROOT.glob("requirements*.lock"))]:
        assert "://" not in (ROOT / name).read_text(encoding="utf-8"), name
    for path in (ROOT / "scripts").glob("*.sh"):
        assert not re.search(r"https?://", path.read_text(encoding="utf-8")), path.name
