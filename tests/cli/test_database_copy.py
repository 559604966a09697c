"""`perdure db copy`: what it says, and what it refuses."""

from pathlib import Path

import pytest

from cli.conftest import Perdure
from perdure.errors import StoreFailed
from perdure.store.sqlite.rows import SqliteRows


def test_a_copy_has_the_tasks_and_says_how_many_rows_each_table_has(perdure: Perdure, tmp_path: Path) -> None:
    task_id = perdure("submit", "email.send", '{"to": "a@b.org"}', "--json").json["id"]
    copied = perdure("db", "copy", "store.db", "copy.db", "--json")
    assert (copied.code, copied.err) == (0, "")
    rows = {each["table"]: each["rows"] for each in copied.json["tables"]}
    assert (rows["tasks"], rows["live"], rows["ends"]) == (1, 1, 0)
    assert all(len(each["sha256"]) == 64 for each in copied.json["tables"])
    shown = perdure("task", "show", task_id, "--store", str(tmp_path / "copy.db"), "--json").json
    assert shown == perdure("task", "show", task_id, "--json").json


def test_for_people_it_is_a_table_and_what_is_being_done(perdure: Perdure) -> None:
    perdure("submit", "email.send")
    copied = perdure("db", "copy", "store.db", "sqlite:///copy.db")
    assert copied.out.splitlines()[0].split() == ["TABLE", "ROWS", "SHA-256", "IN", "BOTH"]
    assert copied.err.splitlines()[-1] == "comparing"


def test_a_store_is_not_copied_onto_itself_nor_onto_one_that_is_used(perdure: Perdure) -> None:
    perdure("submit", "email.send")
    onto_itself = perdure("db", "copy", "store.db", "sqlite:///store.db")
    assert onto_itself.code == 2
    assert "both SRC and DST" in onto_itself.err
    perdure("db", "copy", "store.db", "copy.db")
    again = perdure("db", "copy", "store.db", "copy.db", "--json")
    assert (again.code, again.problem["code"]) == (2, "conflict")
    assert "is not empty" in again.problem["message"]


def test_a_source_that_is_not_there_leaves_no_destination_behind(perdure: Perdure, tmp_path: Path) -> None:
    answer = perdure("db", "copy", "nothing.db", "copy.db")
    assert answer.code == 3
    assert "there is no store" in answer.err
    assert not (tmp_path / "copy.db").exists()


def test_a_copy_that_was_interrupted_is_refused_with_the_command_that_goes_on(
    perdure: Perdure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    perdure("submit", "email.send")
    with monkeypatch.context() as patch:
        patch.setattr(SqliteRows, "finish", _interrupt)
        assert perdure("db", "copy", "store.db", "copy.db").code != 0
    refused = perdure("task", "list", "--store", "copy.db", "--json")
    assert (refused.code, refused.problem["code"]) == (3, "unfinished_copy")
    command = f"perdure db copy {tmp_path / 'store.db'} {tmp_path / 'copy.db'}"
    assert command in refused.problem["message"]
    assert command in perdure("doctor", "--store", "copy.db").out
    assert perdure(*command.split()[1:]).code == 0
    assert perdure("task", "list", "--store", "copy.db", "--json").code == 0


def _interrupt(rows: SqliteRows) -> None:
    raise StoreFailed("the copy is interrupted here")


def test_a_gateway_is_neither_copied_nor_copied_to(perdure: Perdure) -> None:
    perdure("submit", "email.send")
    for way in (("http://localhost:1", "copy.db"), ("store.db", "http://localhost:1")):
        answer = perdure("db", "copy", *way)
        assert answer.code == 2
        assert "is a gateway's" in answer.err
