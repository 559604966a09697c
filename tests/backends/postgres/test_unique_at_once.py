"""Transactions that come for one unique key at the same time."""

import msgspec

from backends.postgres.crew import Writer, task, with_options
from backends.postgres.racing import Beside, answer, crew
from perdure.ambient import SystemClock
from perdure.domain.task import Task
from perdure.domain.unique import SubmitOutcome, Unique
from perdure.store.postgres import submission
from perdure.store.postgres.clock import StoreClock
from perdure.store.postgres.connecting import READ_COMMITTED
from perdure.store.postgres.transaction import Transaction


def debounced(writer: Writer) -> Task:
    """A task that is debounced where another holds its key."""
    unique = Unique(on_conflict="debounce", wait=300.0).key("k")
    return with_options(task(writer.ids.new()), msgspec.json.encode({"unique": unique}).decode())


def test_what_waited_for_a_key_comes_after_what_it_waited_for(postgres_database: str) -> None:
    beside = Beside(postgres_database)
    with crew(postgres_database, READ_COMMITTED, 2) as (one, other):
        begun_us = other.session.begin(durable=False)
        early = Transaction(other.session.connection, begun_us, other.session.wire, time=StoreClock(SystemClock()))
        first = one.begin()
        assert first.now_us > begun_us
        submission.submit(first, [debounced(one)], one.lanes)
        second = beside.pool.submit(submission.submit, early, [debounced(other)], other.lanes)
        beside.until_held_up(second)
        one.commit(first)
        (told,) = answer(second)
        other.commit(early)
        assert told.outcome == SubmitOutcome.DEBOUNCED
        with one.transaction() as tx:
            rows = tx.connection.execute(
                "SELECT at_us >= created_us FROM perdure_events AS events JOIN perdure_tasks AS tasks USING (n)"
            ).fetchall()
        assert rows == [(True,)]
    beside.close()
