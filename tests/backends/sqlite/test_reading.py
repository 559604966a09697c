"""What the readers promise: short questions, and no more of them waiting than can be answered soon."""

import asyncio
import threading

import pytest

from backends.sqlite.notes import ADDING, read_notes
from perdure.errors import StoreBusy
from perdure.store.sqlite import readers
from perdure.store.sqlite.store import SqliteStore
from perdure.store.sqlite.transaction import Transaction

FOR_EVER = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


async def test_questions_beyond_the_bound_are_turned_away_and_told_when_to_come_again(
    threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "BACKLOG_MAX_QUESTIONS", 5)
    go_on = threading.Event()
    waiting = [threaded.readers.read(lambda tx: go_on.wait()) for _ in range(5)]
    with pytest.raises(StoreBusy) as refused:
        await threaded.readers.read(lambda tx: None)
    assert refused.value.retry_after > 0
    go_on.set()
    assert await asyncio.gather(*waiting) == [True] * 5
    assert await read_notes(threaded) == []


async def test_a_question_whose_caller_gave_up_makes_room(
    threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "BACKLOG_MAX_QUESTIONS", 5)
    go_on = threading.Event()
    waiting = [asyncio.ensure_future(threaded.readers.read(lambda tx: go_on.wait())) for _ in range(5)]
    for each in waiting[2:]:
        each.cancel()
    go_on.set()
    await asyncio.wait(waiting)
    for _ in range(10):
        assert await read_notes(threaded) == []


async def test_a_question_that_takes_too_long_is_given_up_and_the_next_is_answered(
    threaded: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await threaded.writer.gather(ADDING, ["a"])
    monkeypatch.setattr(readers, "QUESTION_MAX_US", 50_000)

    def ask(tx: Transaction) -> int:
        ((count,),) = tx.connection.execute(FOR_EVER)
        return int(count)

    answers = await asyncio.gather(*(threaded.readers.read(ask) for _ in range(3)), return_exceptions=True)
    assert [type(each) for each in answers] == [StoreBusy] * 3
    assert "ask for less" in str(answers[0])
    assert await read_notes(threaded) == ["a"]
