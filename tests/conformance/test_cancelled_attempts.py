"""Who may end an attempt that is asked to stop: its own holder, and a duty whose reason holds for this very task."""

import dataclasses
from typing import Any

import pytest

from conformance.making import DONE, FAILED, HOUR, ORGANIZATION, World, part, settling, us
from conformance.test_neighbours import OTHER
from perdure.domain.attempt import Hold, Lease
from perdure.domain.outcome import Failure
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState
from perdure.store.ledger import ClaimRequest, Guard, SettleAnswer, Settled, WorkerOrder

LOST = Settled(SettleAnswer.LEASE_LOST, None)
STOPPED = Settlement.acknowledged()


async def stopping(world: World, **given: Any) -> Lease:
    """An attempt whose holder has been asked to stop."""
    lease = await world.lease(**{"lease": HOUR, **given})
    await world.start(lease)
    await world.cancel(lease.hold.task_id, grace_us=us(1_000))
    return lease


def stopped_by(text: str) -> Settlement:
    """A handler's own words about its end."""
    return dataclasses.replace(STOPPED, error=Failure("Stopped", text, ""))


def forgeries(mine: Hold, other: Hold) -> dict[str, Hold]:
    return {
        "token": mine._replace(token=other.token),
        "attempt": mine._replace(attempt_id=other.attempt_id),
        "task": mine._replace(task_id=other.task_id),
        "organization": mine._replace(organization=OTHER),
    }


@pytest.mark.parametrize("settlement", [STOPPED, DONE, FAILED], ids=["stopped", "done", "failed"])
async def test_only_the_very_attempt_ends_what_is_asked_to_stop(world: World, settlement: Settlement) -> None:
    mine, other = await stopping(world), await stopping(world)
    for what, forged in forgeries(mine.hold, other.hold).items():
        with world.unchanged(late_results=True):
            assert await world.settle(forged, settlement) == LOST, what
    assert (await world.settle(mine, settlement)).state is TaskState.CANCELLED
    assert await world.state(other.hold.task_id) is TaskState.CANCELLING


async def test_a_revoked_worker_does_not_end_it_and_another_revoked_one_is_no_reason(world: World) -> None:
    mine, other = await stopping(world), await stopping(world)
    await world.worker("v")
    await world.ledger.order(ORGANIZATION, "v", WorkerOrder.REVOKE, "bob")
    with world.unchanged():
        assert await world.settle(mine, STOPPED, Guard.WORKER_REVOKED) == LOST
    assert (await world.settle(mine, STOPPED)).state is TaskState.CANCELLED
    await world.ledger.order(ORGANIZATION, "w", WorkerOrder.REVOKE, "bob")
    with world.unchanged():
        assert await world.settle(other, STOPPED) == LOST
    assert (await world.settle(other, STOPPED, Guard.WORKER_REVOKED)).state is TaskState.CANCELLED


async def test_what_each_says_of_its_own_end_is_kept_apart(world: World) -> None:
    leases = [await stopping(world) for _ in range(3)]
    said = [stopped_by(f"at row {n}") for n in range(3)]
    answers = await world.ledger.settle([settling(*each) for each in zip(leases, said, strict=True)])
    assert [each.state for each in answers] == [TaskState.CANCELLED] * 3
    for n, lease in enumerate(leases):
        error = (await world.look(lease.hold.task_id)).last_error
        assert error is not None
        assert error.message == f"at row {n}"


# Receipts


def receipts_or_skip(world: World) -> None:
    if not world.store.capabilities.caller_transactions:
        pytest.skip("the store does not declare caller transactions")


async def with_receipt(world: World, lease: Lease) -> None:
    from conformance.test_caller import write_receipt

    write_receipt(world, lease)


async def test_a_receipt_of_another_task_ends_nobody_else(world: World) -> None:
    receipts_or_skip(world)
    mine, other = await world.lease(lease=HOUR), await world.lease(lease=HOUR)
    await with_receipt(world, other)
    for lease in (mine, other):
        await world.cancel(lease.hold.task_id)
    assert (await world.settle(mine, STOPPED)).state is TaskState.CANCELLED
    assert (await world.settle(other, STOPPED)).state is TaskState.SUCCEEDED


@pytest.mark.parametrize("is_cancelled", [False, True])
async def test_a_receipt_of_another_task_whose_attempt_had_that_id_is_none(world: World, is_cancelled: bool) -> None:
    receipts_or_skip(world)
    await world.submit()
    request = ClaimRequest("w", world.leases(1))
    (first,) = await world.ledger.claim(request)
    await with_receipt(world, first)
    await world.finish(first)
    await world.submit()
    (second,) = await world.ledger.claim(request)
    assert second.hold.attempt_id == first.hold.attempt_id
    (facts,) = await world.ledger.facts([second.hold])
    assert facts is not None
    assert facts.receipt is None
    if is_cancelled:
        await world.cancel(second.hold.task_id)
    answer = await world.settle(second, FAILED)
    assert answer.state is (TaskState.CANCELLED if is_cancelled else TaskState.DEAD_LETTERED)


async def test_nobody_stops_by_a_receipt_who_was_not_asked_to(world: World) -> None:
    receipts_or_skip(world)
    lease = await world.lease(lease=HOUR)
    await with_receipt(world, lease)
    with world.unchanged():
        assert await world.settle(lease, STOPPED) == LOST
    assert (await world.settle(lease, DONE)).state is TaskState.SUCCEEDED


async def test_a_receipt_is_written_for_the_very_task_whoever_else_is_revoked(world: World) -> None:
    from conformance.test_caller import write_receipt
    from perdure.errors import LeaseLost

    receipts_or_skip(world)
    mine, other = await world.lease(), await world.lease()
    await world.worker("v")
    await world.ledger.order(ORGANIZATION, "v", WorkerOrder.REVOKE, "bob")
    for what, forged in forgeries(mine.hold, other.hold).items():
        with world.unchanged(), pytest.raises(LeaseLost):
            write_receipt(world, mine._replace(hold=forged))
        assert what
    write_receipt(world, mine)
    assert await world.ledger.receipt_known(mine.hold)


# Repeats and late results


async def test_a_repeat_is_one_only_for_the_very_attempt(world: World) -> None:
    mine, other = await world.lease(), await world.lease()
    await world.finish(mine)
    await world.finish(other, settlement=FAILED)
    for what, forged in forgeries(mine.hold, other.hold).items():
        if what != "token":
            with world.unchanged(late_results=True):
                assert await world.settle(forged, DONE) == LOST, what
    assert (await world.settle(mine, DONE)).answer is SettleAnswer.REPLAYED


async def late_results(world: World, task_id: str) -> int:
    return len([each for each in await world.views.events(ORGANIZATION, task_id) if each.type == "late_result"])


async def test_a_late_result_is_noted_whatever_else_is_told_of_the_attempt(world: World) -> None:
    lease = await world.lease(max_losses=5)
    await world.report(lease, phase="executing", part=part(1))
    world.advance(61)
    await world.sweep()
    world.advance(61)
    await world.ledger.promote(10)
    again = await world.claim_one()
    await world.report(again, phase="executing")
    await world.settle(lease, DONE)
    await world.settle(lease, DONE)
    assert await late_results(world, lease.hold.task_id) == 1
    world.advance(61)
    await world.sweep()
    await world.settle(again, DONE)
    assert await late_results(world, lease.hold.task_id) == 2


async def test_a_late_result_is_noted_where_another_task_had_one_of_an_attempt_of_that_id(world: World) -> None:
    request = ClaimRequest("w", world.leases(1))
    for _ in range(2):
        task_id = await world.submit(on_loss="fail")
        (lease,) = await world.ledger.claim(request)
        assert lease.hold.task_id == task_id
        world.advance(61)
        await world.sweep()
        await world.settle(lease, DONE)
        assert await late_results(world, task_id) == 1
