"""Rates, where a transaction that began before others comes after them: its starts count from when it comes."""

import threading
from collections.abc import Callable

import msgspec
import pytest

from backends.postgres.crew import Writer, job, settlings, task
from backends.postgres.starts import exceeded
from conformance import postgres_rows
from perdure.domain import limits
from perdure.domain.attempt import Lease
from perdure.domain.gate import Gate, GateSort
from perdure.domain.settlement import Settlement
from perdure.domain.states import Reason
from perdure.store.job_ledger import Growth
from perdure.store.ledger import Cancellation
from perdure.store.postgres import growing, settling, submission
from perdure.store.postgres.connecting import READ_COMMITTED
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational import cancelling, sweeping

PERIOD_US = 200_000
RATE = Gate(GateSort.RATE, "work", "", 1, PERIOD_US)
ONE_AT_ONCE = Gate(GateSort.CONCURRENCY, "work", "", 1)
PASSED = "SELECT max(free_us) <= extract(epoch FROM clock_timestamp()) * 1000000 FROM perdure_slots"

Act = Callable[[Transaction], object]
Way = Callable[[Writer], tuple[Act, list[Lease]]]
"""One start at the rate is made, whose lease comes along; and what then gives the next one its slot."""


def options(*gates: Gate) -> str:
    """The options of a task with these gates."""
    return msgspec.json.encode({"gates": gates}).decode()


def a_submit(writer: Writer) -> tuple[Act, list[Lease]]:
    """A task comes."""
    writer.submit(writer.tasks(1, options=options(RATE)))
    return lambda tx: submission.submit(tx, writer.tasks(1, options=options(RATE)), writer.lanes), writer.claim(1)


def a_promotion(writer: Writer) -> tuple[Act, list[Lease]]:
    """A task is due."""
    writer.submit(writer.tasks(1, options=options(RATE)))

    def promote(tx: Transaction) -> None:
        submission.submit(tx, writer.tasks(1, options=options(RATE)), writer.lanes, pending=True)
        sweeping.promote(tx, 100)

    return promote, writer.claim(1)


def a_cancel(writer: Writer) -> tuple[Act, list[Lease]]:
    """The one whose turn it was is cancelled, and it is the turn of the one behind it."""
    writer.submit(writer.tasks(1, options=options(RATE)))
    started = writer.claim(1)
    first, second = writer.tasks(2, options=options(RATE))
    writer.submit([first])
    writer.submit([second])
    given = Cancellation("default", first.id, "bob", Reason.USER, None, None, limits.CANCEL_GRACE_DEFAULT_US)
    return lambda tx: cancelling.cancel(tx, [given]), started


def an_end(writer: Writer) -> tuple[Act, list[Lease]]:
    """The slot of a concurrency is given back, and who waited for it goes on to the rate."""
    writer.submit(writer.tasks(2, options=options(ONE_AT_ONCE, RATE)))
    started = writer.claim(1)
    return lambda tx: settling.settle(tx, settlings(started)), started


def a_hand_back(writer: Writer) -> tuple[Act, list[Lease]]:
    """The task itself comes back, and starts once more."""
    writer.submit(writer.tasks(1, options=options(RATE)))
    started = writer.claim(1)
    return lambda tx: settling.settle(tx, settlings(started, Settlement.handed_back())), started


def a_growth(writer: Writer) -> tuple[Act, list[Lease]]:
    """The job of the task grows."""
    writer.submit_jobs([job(writer.ids, {"split": []})])
    (split,) = writer.claim(1)
    writer.submit(writer.tasks(1, options=options(RATE)))
    page = task(writer.ids.new(), name="page", request_hash="page", options=options(RATE))
    return lambda tx: growing.grow(tx, [Growth(split.hold, (page,), ())], writer.lanes), writer.claim(1)


WAYS = (a_submit, a_promotion, a_cancel, an_end, a_hand_back, a_growth)


@pytest.mark.parametrize("writers", [READ_COMMITTED], indirect=True)
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_who_began_while_the_rate_was_full_starts_nothing_in_that_time(
    writers: list[Writer], postgres_database: str, way: Way
) -> None:
    acting, claiming, duty, *_ = writers
    act, started = way(acting)
    assert len(started) == 1
    early, claim = acting.begin(), claiming.begin()
    _until_its_time_has_passed(duty)
    with duty.transaction() as tx:
        sweeping.sweep_due(tx, 100)
    act(early)
    acting.commit(early)
    assert len(claiming.claim_in(claim, 10)) == 1
    claiming.commit(claim)
    with duty.transaction() as tx:
        assert exceeded(tx.connection, RATE.slots, PERIOD_US) == []
    assert not postgres_rows.contradictions(postgres_database)


def _until_its_time_has_passed(writer: Writer) -> None:
    """Return once the slot of the start is free by the server's clock."""
    passed = False
    while not passed:
        threading.Event().wait(0.002)
        with writer.transaction() as tx:
            ((passed,),) = tx.connection.execute(PASSED).fetchall()
