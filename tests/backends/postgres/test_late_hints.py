"""What is entered long after its instant is found soon after its transaction is over, by whoever is told of it."""

import asyncio
from typing import Any

import psycopg
import pytest

from backends.postgres.crew import Writer, ids, task
from backends.postgres.opened import one, opened, plain
from conformance.stores import ManualClock
from perdure.ambient import Chance, SystemClock
from perdure.domain.limits import SECOND_US
from perdure.engine.duties import DutyRunner
from perdure.engine.promote import Promote
from perdure.store.postgres import ledger
from perdure.store.postgres.claiming import Claims
from perdure.store.postgres.marks import LATE_SHARE
from perdure.store.postgres.passed import BEGINNING_US, Passed
from perdure.store.postgres.transaction import Transaction
from perdure.store.postgres.whole_looks import SETTLED_US
from perdure.store.wakeups import Topic

SOON = 10.0
"""The duty looks once in 30 seconds unasked."""
LOOK_US = SECOND_US // 10


@pytest.fixture
def clock() -> ManualClock:
    """The time by which looks from the beginning are made."""
    return ManualClock()


def entered_late(store: Any, connection: psycopg.Connection[Any]) -> str:
    """A task that a caller's transaction submits which was open for a minute; it is not committed yet."""
    id: str = ids().new()
    store.caller.submit(connection, [task(id)])
    connection.execute("UPDATE perdure_live SET due_us = due_us - 60000000 WHERE state = 'pending'")
    return id


@pytest.mark.parametrize("every_us", [ledger.LOOKS_EVERY_US, SECOND_US])
async def test_two_transactions_that_end_shortly_one_after_the_other_are_both_seen(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch, every_us: int
) -> None:
    monkeypatch.setattr(ledger, "LOOKS_EVERY_US", every_us)
    query = """
        SELECT count(*) FROM perdure_live AS live JOIN perdure_tasks AS tasks USING (n)
        WHERE tasks.id = %s AND live.state = 'queued'
    """
    async with opened(postgres_database) as store:
        # Of two transactions that make a lane, one waits for the other.
        await store.ledger.submit([task(ids().new())])
        runner = DutyRunner([Promote(store.ledger)], store.ledger, store.wakeups, SystemClock(), Chance(1))
        waiting = store.wakeups.subscribe(Topic.READY)
        with psycopg.connect(postgres_database) as first, psycopg.connect(postgres_database) as second:
            submitted = [(each, entered_late(store, each)) for each in (first, second)]
            async with runner, asyncio.timeout(2 * SOON):
                for connection, id in submitted:
                    connection.commit()
                    with plain(postgres_database) as looking:
                        async with asyncio.timeout(SOON):
                            while not one(looking, query, id):
                                await waiting.wait(SOON)


async def test_a_look_that_was_none_from_the_beginning_is_followed_by_one(
    postgres_database: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.store.postgres.ledger.SystemClock", lambda: clock)
    async with opened(postgres_database) as store:
        for sweep in (store.ledger.promote, store.ledger.expire):
            told = []
            for _ in range(2):
                swept = await sweep(100)
                told.append((swept.quiet, swept.again_in_us))
            clock.advance(ledger.LOOKS_EVERY_US)
            swept = await sweep(100)
            told.append((swept.quiet, swept.again_in_us))
            assert told == [(True, None), (False, ledger.LOOKS_EVERY_US), (True, None)]


def test_a_claim_that_waits_long_puts_off_no_look(writers: list[Writer], clock: ManualClock) -> None:
    passed, writer = Passed(clock.monotonic_us), writers[0]
    tx = writer.begin()
    look = passed.look(tx)
    clock.advance(LOOK_US)
    look.answered()
    clock.advance(10 * SECOND_US)
    look.found(None)
    writer.commit(tx)
    assert passed.whole.again_us == clock.monotonic_us() - 10 * SECOND_US + LATE_SHARE * LOOK_US


def test_what_is_due_while_a_claim_waits_has_not_passed(writers: list[Writer], clock: ManualClock) -> None:
    passed, writer = Passed(clock.monotonic_us), writers[0]
    tx = writer.begin()
    look, asked_us = passed.look(tx), tx.now_us
    assert look.since_us == BEGINNING_US
    look.answered()
    tx.now_us += SECOND_US
    look.found(None)
    writer.commit(tx)
    assert passed.look(tx).since_us == asked_us - SETTLED_US


def test_a_claim_that_has_not_looked_at_all_is_reminded(
    writers: list[Writer], clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reminders: list[int] = []
    writer, run = writers[0], Transaction.run
    writer.claims = Claims(clock, remind=reminders.append)

    def slow(tx: Transaction, name: str, /, **bindings: Any) -> Any:
        if name == "claim_look":
            clock.advance(LOOK_US)
        return run(tx, name, **bindings)

    writer.submit(writer.tasks(1))
    monkeypatch.setattr(Transaction, "run", slow)
    assert (len(writer.claim(2)), reminders) == (1, [])
    clock.advance(SECOND_US)
    assert (writer.claim(1), reminders) == ([], [LATE_SHARE * LOOK_US - SECOND_US])
    clock.advance(SECOND_US)
    assert (writer.claim(1), len(reminders)) == ([], 1), "it has looked, and is reminded for ever"
