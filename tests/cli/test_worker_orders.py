"""What operators order a running worker by the command line."""

from pathlib import Path

import pytest

from cli.conftest import Perdure
from cli.test_worker import TASKS, Start, ended, start

__all__ = ["start"]
UNKNOWN = "01900000-0000-7000-8000-000000000000"


def worker_id(perdure: Perdure) -> str:
    """The id of the one worker, once it is there."""
    for _ in range(200):
        workers = perdure("worker", "list", "--json").json["workers"]
        if workers:
            return str(workers[0]["id"])
    raise AssertionError("the worker did not come up")


@pytest.mark.parametrize("last", ["drain", "revoke"])
def test_a_worker_is_paused_resumed_and_sent_away(
    perdure: Perdure, start: Start, tmp_path: Path, last: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERDURE_HEARTBEAT", "0.2")
    (tmp_path / "tasks.py").write_text(TASKS.format(word="hello"))
    perdure("db", "migrate")
    worker = start("worker", "tasks:app")
    id = worker_id(perdure)
    assert perdure("worker", "pause", id).out == f"worker {id} shall claim nothing until it is resumed\n"
    task = perdure("submit", "greet", '{"name": "ann"}').out.strip()
    assert perdure("task", "wait", task, "--timeout", "1").code == 1
    assert perdure("worker", "list", "--json").json["workers"][0]["order"] == "pause"
    assert perdure("worker", "resume", id, "--json").json == {"worker": id, "order": "work"}
    assert perdure("task", "wait", task, "--timeout", "30").code == 0
    assert perdure("worker", last, id).code == 0
    assert ended(worker)[0] == 0


@pytest.mark.parametrize("order", ["pause", "resume", "drain", "revoke"])
def test_a_worker_that_nobody_knows_is_bad_input(perdure: Perdure, order: str) -> None:
    perdure("db", "migrate")
    answer = perdure("worker", order, UNKNOWN)
    assert (answer.code, answer.out) == (2, "")
    assert UNKNOWN in answer.err


def test_a_queue_that_no_live_worker_of_the_kind_serves_is_noted(
    perdure: Perdure, start: Start, tmp_path: Path
) -> None:
    (tmp_path / "tasks.py").write_text(TASKS.format(word="hello"))
    perdure("db", "migrate")
    worker = start("worker", "tasks:app")
    id = worker_id(perdure)
    note = "no live worker serves the queue defualt for the kind greet: those that have the kind serve default"
    assert perdure("submit", "greet", '{"name": "ann"}').err == ""
    submitted = perdure("submit", "greet", '{"name": "ann"}', "--queue", "defualt")
    assert submitted.err.splitlines() == [note]
    assert perdure("task", "wait", submitted.out.strip(), "--timeout", "0.01").err.count(note) == 1
    perdure("worker", "drain", id)
    assert ended(worker)[0] == 0
