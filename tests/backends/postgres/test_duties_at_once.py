"""Duties of several runners, beside what else goes on: nobody waits, nothing is done twice, nothing is forgotten."""

from typing import Any

import pytest

from backends.postgres.crew import Writer, job, settlings, with_trigger
from backends.postgres.racing import Beside, answer, run
from perdure.domain import limits
from perdure.domain.attempt import Lease, Renewal
from perdure.domain.outcome import Failure
from perdure.domain.settlement import Charge, Settlement
from perdure.domain.states import Reason, TaskState
from perdure.domain.task import Job, Trigger
from perdure.store.ledger import Guard, Redrive, SettleAnswer, Settling
from perdure.store.postgres import renewing, settling
from perdure.store.postgres.connecting import READ_COMMITTED
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational import cancelling, redriving, sweeping

FAILED = Settlement.failed(Failure("ValueError", "boom"), Reason.PERMANENT, dead_letters=False)
LOST = Settlement.lost_and_queued(Charge.LOSS)


ONE_BY_ONE = pytest.mark.parametrize("writers", [READ_COMMITTED], indirect=True)
"""Where one of two transactions that do not wait for each other would be run again."""


def made(writer: Writer, graph: dict[str, Any], **rules: Trigger) -> tuple[Job, dict[str, str]]:
    """A job that is there, and its tasks' ids; `rules` are triggers by name."""
    built = job(writer.ids, graph)
    tasks = tuple(with_trigger(each, rules.get(each.rare.name or "", each.terms.trigger)) for each in built.tasks)
    built = built._replace(tasks=tasks)
    writer.submit_jobs([built])
    return built, {task.rare.name or "": task.id for task in tasks}


def claimed(writer: Writer) -> dict[str, Lease]:
    """What can be claimed, by the task's name."""
    return {lease.name or "": lease for lease in writer.claim(100)}


def states(writer: Writer, ids: dict[str, str]) -> dict[str, tuple[str, int]]:
    """State and open parents of tasks by name."""
    query = """
        SELECT tasks.id, coalesce(live.state, ends.state), coalesce(live.waits, 0)
        FROM perdure_tasks AS tasks LEFT JOIN perdure_live AS live USING (n) LEFT JOIN perdure_ends AS ends USING (n)
    """
    with writer.transaction() as tx:
        rows = {id: (state, waits) for id, state, waits in tx.connection.execute(query)}  # type: ignore[attr-defined]
    return {name: rows[id] for name, id in ids.items()}


def redrive(tx: Transaction, id: str) -> Any:
    return redriving.redrive(tx, [Redrive("default", id, "bob")])[0]


@ONE_BY_ONE
def test_runners_share_what_is_due(writers: list[Writer]) -> None:
    writers[0].submit(writers[0].tasks(10, delay_us=1))
    first, second = writers[0].begin(), writers[1].begin()
    assert sweeping.promote(first, 6).moved == 6
    assert sweeping.promote(second, 10).moved == 4
    writers[1].commit(second)
    writers[0].commit(first)
    assert len(writers[0].claim(20)) == 10


@ONE_BY_ONE
def test_runners_share_what_is_overdue(writers: list[Writer]) -> None:
    writers[0].submit(writers[0].tasks(10, ttl_us=1))
    first, second = writers[0].begin(), writers[1].begin()
    assert sweeping.expire(first, 6).moved == 6
    assert sweeping.expire(second, 10).moved == 4
    writers[1].commit(second)
    writers[0].commit(first)


def test_runners_share_a_stopping_job(writers: list[Writer]) -> None:
    stopping, ids = made(writers[0], {f"t{number}": [] for number in range(10)})
    held = writers[0].claim(4)
    run(writers[0], lambda tx: cancelling.cancel_job(tx, "default", stopping.id, "bob", "why"))
    first, second = writers[0].begin(), writers[1].begin()
    moved = len(first.document("stopping_held", count=3, grace=1))
    moved += len(second.document("stopping_held", count=10, grace=1))
    assert moved == len(held) == 4
    writers[0].session.roll_back()
    writers[1].session.roll_back()
    run(writers[2], lambda tx: sweeping.cascade(tx, 100, limits.CANCEL_GRACE_DEFAULT_US))
    assert sorted(state for state, _ in states(writers[0], ids).values()) == ["cancelled"] * 6 + ["cancelling"] * 4


def test_two_cascades_go_on_from_different_ends(writers: list[Writer], beside: Beside) -> None:
    families = [made(writers[0], {"a": [], "b": ["a"], "c": ["b"], "d": ["c"]})[1] for _ in range(6)]
    writers[0].settle(settlings(writers[0].claim(100), FAILED))
    runs = [
        beside.run(writer, lambda tx: sweeping.cascade(tx, 100, limits.CANCEL_GRACE_DEFAULT_US)) for writer in writers
    ]
    for each in runs:
        answer(each)
    run(writers[0], lambda tx: sweeping.cascade(tx, 100, limits.CANCEL_GRACE_DEFAULT_US))
    for ids in families:
        assert [state for state, _ in states(writers[0], ids).values()] == ["failed", *["cancelled"] * 3]


def test_a_redrive_beside_a_cascade_revives_all_that_fell(writers: list[Writer], beside: Beside) -> None:
    _, ids = made(writers[0], {"a": [], "b": ["a"], "c": ["b"], "d": ["c"]})
    writers[0].settle(settlings(writers[0].claim(1), FAILED))
    cascade = writers[0].begin()
    sweeping.cascade(cascade, 1, limits.CANCEL_GRACE_DEFAULT_US)
    redriven = beside.held_up(writers[1], lambda tx: redrive(tx, ids["a"]))
    writers[0].commit(cascade)
    assert answer(redriven) is TaskState.QUEUED
    run(writers[2], lambda tx: sweeping.cascade(tx, 100, limits.CANCEL_GRACE_DEFAULT_US))
    assert states(writers[0], ids) == {"a": ("queued", 0)} | dict.fromkeys("bcd", ("pending", 1))


def test_a_redrive_beside_a_settle_of_another_parent_counts_it(writers: list[Writer], beside: Beside) -> None:
    _, ids = made(writers[0], {"a": [], "p": [], "c": ["a", "p"]})
    leases = claimed(writers[0])
    writers[0].settle(settlings([leases["a"]], FAILED))
    assert states(writers[0], ids)["c"] == ("cancelled", 0)
    settle = writers[0].begin()
    settling.settle(settle, settlings([leases["p"]]))
    redriven = beside.held_up(writers[1], lambda tx: redrive(tx, ids["a"]))
    writers[0].commit(settle)
    answer(redriven)
    assert states(writers[0], ids)["c"] == ("pending", 1)
    writers[0].settle(settlings(writers[0].claim(1)))
    assert states(writers[0], ids)["c"] == ("queued", 0)


def test_a_settle_of_another_parent_beside_a_redrive_is_counted(writers: list[Writer], beside: Beside) -> None:
    _, ids = made(writers[0], {"a": [], "p": [], "c": ["a", "p"], "e": ["a", "p"]}, e="all_done")
    leases = claimed(writers[0])
    writers[0].settle(settlings([leases["a"]], FAILED))
    assert states(writers[0], ids)["e"] == ("pending", 1)
    redriving_a = writers[0].begin()
    redrive(redriving_a, ids["a"])
    settled = beside.held_up(writers[1], lambda tx: settling.settle(tx, settlings([leases["p"]])))
    writers[0].commit(redriving_a)
    answer(settled)
    assert states(writers[0], ids) == {
        "a": ("queued", 0),
        "p": ("succeeded", 0),
        "c": ("pending", 1),
        "e": ("pending", 1),
    }


def test_redrives_of_two_parents_at_once_wait_for_both(writers: list[Writer], beside: Beside) -> None:
    _, ids = made(writers[0], {"a": [], "p": [], "c": ["a", "p"]})
    leases = claimed(writers[0])
    writers[0].settle(settlings([leases["a"], leases["p"]], FAILED))
    first = writers[0].begin()
    redrive(first, ids["a"])
    second = beside.held_up(writers[1], lambda tx: redrive(tx, ids["p"]))
    writers[0].commit(first)
    answer(second)
    assert states(writers[0], ids)["c"] == ("pending", 2)
    writers[0].settle(settlings(writers[0].claim(2)))
    assert states(writers[0], ids)["c"] == ("queued", 0)


# Receipts


def write_receipt(tx: Transaction, lease: Lease) -> None:
    hold = lease.hold
    written = tx.value(
        "receipt_insert",
        organization=hold.organization,
        task=hold.task_id,
        attempt=hold.attempt_id,
        token=hold.token,
        partly=0,
        result='"kept"',
        encoding="json",
        summary=None,
        digest="",
    )
    assert written is not None


def held(writer: Writer) -> Lease:
    writer.submit(writer.tasks(1))
    (lease,) = writer.claim(1)
    return lease


def test_a_renewal_does_not_wait_for_a_receipt(writers: list[Writer]) -> None:
    lease = held(writers[0])
    receipt = writers[0].begin()
    write_receipt(receipt, lease)
    (renewed,) = run(writers[1], lambda tx: renewing.renew(tx, [Renewal(lease.hold, True)]))
    assert renewed is not None
    writers[0].commit(receipt)


def test_a_duty_leaves_an_attempt_whose_receipt_is_being_written(writers: list[Writer]) -> None:
    lease = held(writers[0])
    receipt = writers[0].begin()
    write_receipt(receipt, lease)
    lost = Settling(lease.hold._replace(token=""), Guard.LEASE_OVER, LOST, "duty")

    def late(tx: Transaction) -> Any:
        tx.now_us += limits.LEASE_DEFAULT_US
        return settling.settle(tx, [lost])[0]

    assert run(writers[1], late).answer is SettleAnswer.LEASE_LOST
    writers[0].commit(receipt)
    assert run(writers[1], late).state is TaskState.SUCCEEDED


def test_a_failure_beside_a_receipt_waits_and_ends_as_the_receipt_says(writers: list[Writer], beside: Beside) -> None:
    """Serializable: what the server cannot tell of a lock alone, it tells of the row that the caller touched."""
    lease = held(writers[0])
    receipt = writers[0].begin()
    write_receipt(receipt, lease)
    settled = beside.held_up(writers[1], lambda tx: settling.settle(tx, settlings([lease], FAILED)))
    writers[0].commit(receipt)
    assert answer(settled)[0].state is TaskState.SUCCEEDED
