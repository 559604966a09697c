"""What scripts rely on: exit codes, one line on standard error, JSON and nothing else on standard output."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Perdure
from perdure.cli import main, problems
from perdure.cli.main import run
from perdure.errors import Invalid, PerdureError, StoreBusy

UNKNOWN = "01900000-0000-7000-8000-000000000000"


@pytest.mark.parametrize(
    "arguments",
    [
        ["frob"],
        ["task", "frob"],
        ["task", "show"],
        ["task", "list", "--limit", "none"],
        ["task", "list", "--state", "happy"],
        ["task", "show", "not-an-id"],
        ["task", "events", "not-an-id"],
        ["task", "cancel", "not-an-id"],
        ["task", "wait", "not-an-id"],
        ["job", "show", "not-an-id"],
        ["job", "cancel", "not-an-id"],
        ["job", "run", "missing.yaml"],
        ["job", "submit", "missing.yaml"],
        ["job", "run", "missing.yaml", "--concurrency", "0"],
        ["submit", "a.kind", "{broken"],
        ["submit", "a.kind", "@missing.json"],
        ["submit", "a.kind", "{}", "--label", "nothing"],
        ["submit", "a.kind", "{}", "--run-at", "tomorrow"],
        ["submit", "a.kind", "{}", "--run-at", "2026-12-01T08:00:00"],
        ["submit", "a.kind", "{}", "--priority", "11"],
        ["submit", "no good kind", "{}"],
        ["submit", "a.kind", "{}", "--store", "mysql://localhost/x"],
        ["dead-letter", "requeue"],
        ["dead-letter", "requeue", UNKNOWN, "--all"],
        ["dead-letter", "purge", "--all"],
        ["queue", "purge", "default"],
        ["worker", "no_such_module:app"],
        ["worker", "not-a-target"],
        ["dev", "--concurrency", "many"],
    ],
)
def test_usage_and_bad_input_are_one_line_and_exit_code_2(perdure: Perdure, store: Path, arguments: list[str]) -> None:
    answer = perdure(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    [line] = answer.err.splitlines()
    assert line.startswith("perdure: ")
    assert "Traceback" not in line
    assert not store.exists() or perdure("task", "list", "--json").json["tasks"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["task", "list"],
        ["task", "show", UNKNOWN],
        ["task", "wait", UNKNOWN],
        ["job", "list"],
        ["queue", "list"],
        ["dead-letter", "list"],
        ["worker", "list"],
        ["db", "status"],
    ],
)
def test_looking_at_a_store_that_is_not_there_is_exit_code_3_and_makes_none(
    perdure: Perdure, store: Path, arguments: list[str]
) -> None:
    answer = perdure(*arguments)
    assert (answer.code, answer.out) == (3, "")
    assert "there is no store at" in answer.err
    assert not store.exists()


def test_an_address_without_http_is_told_how_to_say_a_gateway(perdure: Perdure) -> None:
    answer = perdure("task", "list", "--store", "127.0.0.1:7373")
    assert answer.code == 3
    assert "is it a gateway? Then say http://127.0.0.1:7373" in answer.err


def test_a_wait_that_takes_too_long_tells_where_to_look(perdure: Perdure) -> None:
    answer = perdure("submit", "report.render", "--wait", "--wait-timeout", "0")
    assert answer.code == 1
    assert "had not ended after 0 s" in answer.err
    assert "`perdure task why ID` tells what keeps a task" in answer.err


@pytest.mark.parametrize("group", main.app.registered_groups, ids=lambda group: str(group.name))
def test_the_help_of_a_group_names_each_of_its_commands(group: Any) -> None:
    commands = {command.name for command in group.typer_instance.registered_commands if not command.hidden}
    if group.name != "worker":  # Its help says what it does when it is called without a command.
        assert commands <= set(re.findall(r"[a-z-]+", group.typer_instance.info.help))


def test_a_file_that_is_no_database_is_exit_code_3(perdure: Perdure, store: Path) -> None:
    store.write_text("this is a letter to my aunt, and not a database at all" * 100)
    answer = perdure("task", "list")
    assert answer.code == 3
    assert len(answer.err.splitlines()) == 1


def test_a_store_in_a_folder_that_is_not_there_is_exit_code_3(perdure: Perdure, tmp_path: Path) -> None:
    answer = perdure("submit", "a.kind", "{}", "--store", str(tmp_path / "no" / "store.db"))
    assert answer.code == 3


def test_what_is_not_there_is_exit_code_2(perdure: Perdure) -> None:
    perdure("db", "migrate")
    for arguments in (["task", "show"], ["task", "events"], ["task", "wait"], ["job", "show"], ["task", "cancel"]):
        answer = perdure(*arguments, UNKNOWN)
        assert answer.code == 2, arguments


def test_with_json_an_error_is_one_object_on_standard_error(perdure: Perdure) -> None:
    perdure("db", "migrate")
    answer = perdure("task", "show", UNKNOWN, "--json")
    assert answer.out == ""
    assert answer.problem["code"] == "not_found"
    assert answer.problem["fields"] == {"what": "task", "id": UNKNOWN}
    assert perdure("task", "show", "--json").problem["code"] == "usage"


def test_an_unknown_error_is_called_a_defect_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert problems.tell(ZeroDivisionError("division by zero"), as_json=False) == 1
    assert capsys.readouterr().err == (
        "perdure: ZeroDivisionError: division by zero (a defect of perdure; `perdure --debug ...` shows where)\n"
    )


def test_debug_shows_the_traceback(store: Path) -> None:
    with pytest.raises(PerdureError):
        run(["--debug", "task", "list"])


@pytest.mark.parametrize(("error", "code"), [(Invalid("x"), 2), (StoreBusy("x"), 3), (PerdureError("x"), 1)])
def test_each_error_has_its_exit_code(error: PerdureError, code: int) -> None:
    assert problems.tell(error, as_json=True) == code


def test_help_needs_neither_the_store_nor_the_engine() -> None:
    program = (
        "import sys; from perdure.cli.main import run; code = run(['--help']);"
        "print([m for m in ('apsw', 'asyncio', 'perdure.engine', 'perdure.app', 'rich') if m in sys.modules]);"
        "sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_version(perdure: Perdure) -> None:
    answer = perdure("--version")
    assert answer.code == 0
    assert answer.out.startswith("perdure ")
