"""What is entered long after its place or its instant is found all the same, at the next look from the beginning."""

import pytest

from backends.postgres.crew import Writer
from conformance.stores import ManualClock
from perdure.domain.limits import SECOND_US, WORKER_ACTIVE_DEFAULT_US
from perdure.store.postgres import submission
from perdure.store.postgres.claiming import Claims
from perdure.store.postgres.sightings import Sightings
from perdure.store.postgres.submission import Collided
from perdure.store.postgres.transaction import Transaction
from perdure.store.postgres.whole_looks import SETTLED_US
from perdure.store.relational import queue_views

LONG_US = 100 * SECOND_US


@pytest.fixture
def clock() -> ManualClock:
    """The time by which looks from the beginning are made."""
    return ManualClock()


@pytest.fixture
def writer(writers: list[Writer], clock: ManualClock) -> Writer:
    """A session, a worker `w`, and claims that know no time but the test's."""
    made = writers[0]
    made.claims = Claims(clock)
    return made


def claimed(writer: Writer, count: int = 1) -> list[str]:
    """Which tasks a claim gets. Where it finds something to be done before, it begins again."""
    try:
        leases = writer.claim(count)
    except Collided:
        writer.session.roll_back()
        leases = writer.claim(count)
    return [lease.hold.task_id for lease in leases]


def enter(late: Writer, column: str, us: int) -> None:
    """Let the only task have an instant that has passed for so long, as a transaction does that was open meanwhile."""
    late.session.connection.execute(f"UPDATE perdure_live SET {column} = {late.session.begin(durable=False)} - {us}")
    late.session.commit()


def test_what_was_due_long_before_it_is_entered_is_claimed(
    writers: list[Writer], writer: Writer, clock: ManualClock
) -> None:
    with writer.transaction() as tx:
        (task,) = writer.tasks(1, run_at_us=tx.now_us + LONG_US)
        submission.submit(tx, [task], writer.lanes)
    assert claimed(writer) == []
    enter(writers[1], "due_us", LONG_US)
    assert claimed(writer) == [], "it was not below what has passed"
    clock.advance(SECOND_US)
    assert claimed(writer) == [task.id]


def test_what_is_entered_a_moment_after_it_was_due_is_claimed_at_once(writers: list[Writer], writer: Writer) -> None:
    with writer.transaction() as tx:
        (task,) = writer.tasks(1, run_at_us=tx.now_us + LONG_US)
        submission.submit(tx, [task], writer.lanes)
    with writer.transaction() as tx:
        looked_us = tx.now_us
        assert writer.claim_in(tx, 1) == []
    writers[1].session.connection.execute(f"UPDATE perdure_live SET due_us = {looked_us - SETTLED_US // 2}")
    writers[1].session.commit()
    assert claimed(writer) == [task.id]


@pytest.mark.parametrize("column", ["expires_us", "deadline_us"])
def test_what_was_over_long_before_it_is_entered_ends(
    writers: list[Writer], writer: Writer, clock: ManualClock, column: str
) -> None:
    assert claimed(writer) == []
    writer.submit(writer.tasks(1))
    enter(writers[1], column, LONG_US)
    assert claimed(writer) == []
    assert unfinished(writer) == 1, "it was not below what has passed"
    clock.advance(SECOND_US)
    assert claimed(writer) == []
    assert unfinished(writer) == 0


def unfinished(writer: Writer) -> int:
    """How many tasks have not ended."""
    rows = writer.session.connection.execute("SELECT count(*) FROM perdure_live").fetchall()
    writer.session.commit()
    return int(rows[0][0])


def oldest_us(reader: Writer, sightings: Sightings) -> int:
    """Since when the oldest queued task waits, as a question tells it."""
    tx = Transaction(reader.session.connection, reader.session.begin_reading(), reader.session.wire)
    told = queue_views.overview(tx, "default", WORKER_ACTIVE_DEFAULT_US, sightings.ask).oldest_queued_us
    reader.session.roll_back()
    assert told is not None
    return told


def test_what_is_queued_by_a_long_transaction_is_the_oldest_soon(
    writers: list[Writer], writer: Writer, clock: ManualClock
) -> None:
    sightings, late = Sightings(clock.monotonic_us), writers[1]

    writer.submit(writer.tasks(1))
    claimed(writer)
    tx = late.begin()
    submission.submit(tx, late.tasks(1), late.lanes)
    writer.submit(writer.tasks(1))
    first_us = oldest_us(writer, sightings)
    clock.advance(SETTLED_US)
    assert oldest_us(writer, sightings) == first_us
    late.commit(tx)
    assert oldest_us(writer, sightings) == first_us, "it was not below the mark"
    clock.advance(SECOND_US)
    found_us = oldest_us(writer, sightings)
    assert found_us < first_us
    assert oldest_us(writer, sightings) == found_us, "the mark has not gone back"


def test_what_is_queued_by_a_short_transaction_is_the_oldest_at_once(
    writers: list[Writer], writer: Writer, clock: ManualClock
) -> None:
    sightings, late = Sightings(clock.monotonic_us), writers[1]
    writer.submit(writer.tasks(1))
    claimed(writer)
    tx = late.begin()
    submission.submit(tx, late.tasks(1), late.lanes)
    writer.submit(writer.tasks(1))
    found = []
    for ended in (False, True):
        if ended:
            clock.advance(SETTLED_US - 1)
            late.commit(tx)
        found.append(oldest_us(writer, sightings))
    assert found[1] < found[0]
