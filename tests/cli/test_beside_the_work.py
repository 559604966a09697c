"""What a command looks up once its work is done may fail: the work is told, the exit code is 0, and a note says it."""

from pathlib import Path
from typing import Any

import pytest

from cli.conftest import Perdure
from perdure.engine.engine import Engine
from perdure.errors import StoreUnreachable
from perdure.store.relational.views import RelationalViews
from perdure.store.sqlite.store import SqliteStore

JOB = "name: nightly\ntasks:\n  - {name: a, kind: k}\n"


async def gone(*_: object, **__: object) -> Any:
    raise StoreUnreachable("the store has gone away")


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The store answers what is written, and nothing that is asked."""
    for verb in ("task", "tasks", "workers", "job"):
        monkeypatch.setattr(RelationalViews, verb, gone)


@pytest.mark.usefixtures("away")
def test_a_submit_tells_the_id_though_nothing_can_be_looked_up_then(perdure: Perdure, store: Path) -> None:
    (store.parent / "job.yaml").write_text(JOB)
    perdure("db", "migrate")
    for command in (("submit", "k", "{}"), ("job", "submit", "job.yaml")):
        answer = perdure(*command)
        assert answer.code == 0, answer
        assert len(answer.out.strip()) == 36
        assert answer.err == "how it stands was not looked up: the store has gone away\n"


def test_a_submit_tells_the_id_though_the_kinds_cannot_be_looked_up(
    perdure: Perdure, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Engine, "kinds", gone)
    answer = perdure("submit", "k", "{}")
    assert (answer.code, len(answer.out.strip())) == (0, 36)
    assert "which kinds are known was not looked up: the store has gone away" in answer.err


def test_a_wait_that_fails_tells_what_it_waited_for(perdure: Perdure, store: Path) -> None:
    (store.parent / "job.yaml").write_text(JOB)
    wait = ("--wait", "--wait-timeout", "0.1", "--json")
    assert len(perdure("submit", "k", "{}", *wait).problem["fields"]["task_id"]) == 36
    assert len(perdure("job", "submit", "job.yaml", *wait).problem["fields"]["job_id"]) == 36


def test_the_id_is_told_though_the_store_is_not_closed_in_order(
    perdure: Perdure, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = SqliteStore.close

    async def closed(store: SqliteStore) -> None:
        await close(store)
        raise StoreUnreachable("it went away meanwhile")

    monkeypatch.setattr(SqliteStore, "close", closed)
    answer = perdure("submit", "k", "{}", "--json")
    assert (answer.code, len(answer.json["id"])) == (0, 36)
    assert answer.err == "the work is done, and the store was not closed in order: it went away meanwhile\n"
    refused = perdure("task", "show", answer.json["id"].replace("0", "1"))
    assert (refused.code, "there is no task" in refused.err) == (2, True)


def test_other_acts_are_told_though_their_outcome_cannot_be_looked_up(
    perdure: Perdure, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = perdure("submit", "k", "{}").out.strip()
    monkeypatch.setattr(Engine, "definition", gone)
    limited = perdure("queue", "limit", "mail", "--concurrency", "2")
    assert (limited.code, "the limits of queue mail are changed" in limited.err) == (0, True), limited
    monkeypatch.setattr(RelationalViews, "job", gone)
    answer = perdure("task", "cancel", task, task.replace("0", "1"))
    assert f"{task} is cancelled" in answer.out
    assert "whether the others are jobs was not looked up" in answer.err
