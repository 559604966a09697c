"""The cancel ladder: requested, delivered, stopped; who comes first wins, and the loser is told."""

import pytest

from conformance.making import (
    DONE,
    FAILED,
    FIXED,
    HOUR,
    ORGANIZATION,
    PARTLY_DONE,
    World,
    doubt_settled,
    part,
    retry_in,
    settling,
    us,
)
from perdure.domain.attempt import Progress
from perdure.domain.settlement import Charge, Settlement
from perdure.domain.states import AttemptState, Reason, TaskState
from perdure.errors import PerdureError
from perdure.store.ledger import CancelAnswer, Cancelled, Guard, Renewed, SettleAnswer


@pytest.mark.parametrize("state", ["pending", "queued", "retrying"])
async def test_what_nobody_holds_is_cancelled_at_once(world: World, state: str) -> None:
    if state == "retrying":
        lease = await world.lease()
        await world.settle(lease, retry_in(HOUR))
        task_id = lease.hold.task_id
    else:
        task_id = await world.submit(delay=HOUR if state == "pending" else 0)
    assert await world.cancel(task_id) == Cancelled(CancelAnswer.CANCELLED, TaskState.CANCELLED, Reason.USER)
    task = await world.look(task_id)
    assert (task.state, task.reason, task.finished_us) == (TaskState.CANCELLED, Reason.USER, await world.now_us())
    assert task.cancel is not None
    assert (task.cancel.actor, task.cancel.text, task.cancel.note) == ("bob", "not needed", "for my eyes")
    assert await world.claim(10) == []


async def test_what_is_held_is_told_to_stop_and_keeps_its_lease(world: World) -> None:
    lease = await world.lease()
    assert await world.cancel(lease.hold.task_id) == Cancelled(
        CancelAnswer.CANCELLING, TaskState.CANCELLING, Reason.USER
    )
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.worker, task.finished_us) == (TaskState.CANCELLING, "w", None)
    assert await world.ledger.find_doubtful(10) == []
    assert await world.renew(lease) == Renewed(us(30), us(30))


async def test_an_unknown_task_is_not_found(world: World) -> None:
    with world.unchanged():
        answer = await world.cancel(world.ids.new())
    assert answer == Cancelled(CancelAnswer.NOT_FOUND, None, None)


async def test_another_organizations_task_is_not_found(world: World) -> None:
    task_id = await world.submit()
    with world.unchanged():
        assert (await world.cancel(task_id, organization="other")).answer is CancelAnswer.NOT_FOUND


@pytest.mark.parametrize("settlement", [DONE, PARTLY_DONE, FAILED], ids=lambda each: str(each.state))
async def test_what_has_ended_otherwise_says_how(world: World, settlement: Settlement) -> None:
    lease = await world.lease()
    await world.finish(lease, settlement=settlement)
    with world.unchanged():
        answer = await world.cancel(lease.hold.task_id)
    assert answer == Cancelled(CancelAnswer.ENDED, settlement.state, settlement.reason)


async def test_the_first_request_is_kept_through_to_the_end(world: World) -> None:
    lease = await world.lease()
    await world.cancel(lease.hold.task_id, actor="first", reason=Reason.OPERATOR, text="one")
    world.advance(1)
    again = await world.cancel(lease.hold.task_id, actor="second", reason=Reason.USER, text="two")
    assert again == Cancelled(CancelAnswer.ALREADY, TaskState.CANCELLING, Reason.OPERATOR)
    await world.settle(lease, Settlement.acknowledged())
    once_more = await world.cancel(lease.hold.task_id, actor="third")
    assert once_more == Cancelled(CancelAnswer.ALREADY, TaskState.CANCELLED, Reason.OPERATOR)
    task = await world.look(lease.hold.task_id)
    assert task.reason is Reason.OPERATOR
    assert task.cancel is not None
    assert (task.cancel.actor, task.cancel.text) == ("first", "one")


async def test_from_the_cancel_on_nothing_is_taken_from_the_attempt(world: World) -> None:
    lease = await world.lease()
    await world.start(lease)
    await world.cancel(lease.hold.task_id)
    with world.unchanged():
        for given in (
            {"progress": Progress(1)},
            {"phase": "executing"},
            {"part": part(1)},
            {"checkpoint": "1"},
        ):
            assert isinstance(await world.report(lease, **given), PerdureError)


@pytest.mark.parametrize(
    "settlement",
    [
        DONE,
        PARTLY_DONE,
        FAILED,
        retry_in(5),
        Settlement.snoozed(us(5)),
        Settlement.handed_back(),
        Settlement.gave_up("why"),
        Settlement.expired_unstarted(),
        Settlement.acknowledged(),
    ],
    ids=lambda each: f"{each.event}",
)
async def test_whatever_the_holder_says_ends_a_cancelled_task_cancelled(world: World, settlement: Settlement) -> None:
    lease = await world.lease()
    await world.start(lease)
    await world.cancel(lease.hold.task_id)
    answer = await world.settle(lease, settlement)
    assert (answer.answer, answer.state) == (SettleAnswer.APPLIED, TaskState.CANCELLED)
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.reason, task.result) == (TaskState.CANCELLED, Reason.USER, None)
    assert (task.attempt, task.losses) == (1, 0)
    (attempt,) = await world.views.attempts(ORGANIZATION, lease.hold.task_id)
    assert attempt.state is AttemptState.CANCELLED


async def test_a_settle_that_came_first_wins(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease)
    assert (await world.cancel(lease.hold.task_id)).answer is CancelAnswer.ENDED
    assert await world.state(lease.hold.task_id) is TaskState.SUCCEEDED


async def test_a_holder_that_does_not_answer_is_ended_at_the_cancel_deadline(world: World) -> None:
    lease = await world.lease()
    await world.start(lease)
    await world.cancel(lease.hold.task_id, grace_us=us(20))
    world.advance(15)
    await world.renew(lease)
    world.clock.advance(us(5) - 1)
    assert await world.ledger.find_doubtful(10) == []
    world.clock.advance(1)
    assert len(await world.ledger.find_doubtful(10)) == 1
    (answer,) = await world.sweep()
    assert answer.state is TaskState.CANCELLED
    assert (await world.settle(lease, DONE)).answer is SettleAnswer.LEASE_LOST


async def test_a_cancelled_holder_that_dies_ends_it_cancelled_with_its_lease(world: World) -> None:
    lease = await world.lease(lease=10)
    await world.cancel(lease.hold.task_id, grace_us=us(30))
    world.advance(10)
    (found,) = await world.ledger.find_doubtful(10)
    assert found.guard is Guard.LEASE_OVER
    (answer,) = await world.sweep()
    assert answer.state is TaskState.CANCELLED
    task = await world.look(lease.hold.task_id)
    assert (task.reason, task.losses) == (Reason.USER, 0)


@pytest.mark.parametrize("charge", [Charge.LOSS, Charge.NOTHING])
async def test_a_cancel_that_slips_between_finding_a_loss_and_writing_it_is_not_forgotten(
    world: World, charge: Charge
) -> None:
    lease = await world.lease()
    world.advance(60)
    (found,) = await world.ledger.find_doubtful(10)
    await world.cancel(lease.hold.task_id)
    await world.ledger.settle([doubt_settled(found, FIXED, charge is Charge.LOSS)])
    assert await world.state(lease.hold.task_id) in (TaskState.CANCELLING, TaskState.CANCELLED)
    world.advance(30)
    await world.sweep()
    assert await world.state(lease.hold.task_id) is TaskState.CANCELLED
    assert await world.claim(5) == []


async def test_a_cancel_is_not_forgotten_by_a_worker_that_is_revoked(world: World) -> None:
    from perdure.store.ledger import WorkerOrder

    lease = await world.lease()
    await world.ledger.order(ORGANIZATION, "w", WorkerOrder.REVOKE, "bob")
    (found,) = await world.ledger.find_doubtful(10)
    await world.cancel(lease.hold.task_id)
    await world.ledger.settle([doubt_settled(found, FIXED, True)])
    assert await world.state(lease.hold.task_id) is not TaskState.QUEUED
    await world.sweep()
    assert await world.state(lease.hold.task_id) is TaskState.CANCELLED


async def test_a_zombie_that_wakes_after_the_cancel_ended_changes_nothing(world: World) -> None:
    lease = await world.lease()
    await world.cancel(lease.hold.task_id)
    world.advance(60)
    await world.sweep()
    with world.unchanged(late_results=True):
        assert (await world.settle(lease, DONE)).answer is SettleAnswer.LEASE_LOST
        assert await world.renew(lease, started=True) is None


async def test_a_cancelled_task_cannot_be_redriven(world: World) -> None:
    task_id = await world.submit()
    await world.cancel(task_id)
    with world.unchanged():
        assert isinstance(await world.redrive(task_id), PerdureError)


async def test_a_cancel_after_a_redrive_is_a_request_of_its_own(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease, settlement=FAILED)
    await world.redrive(lease.hold.task_id)
    assert (await world.cancel(lease.hold.task_id, actor="late")).answer is CancelAnswer.CANCELLED
    task = await world.look(lease.hold.task_id)
    assert task.cancel is not None
    assert (task.generation, task.cancel.actor) == (2, "late")


async def test_the_history_tells_the_ladder(world: World) -> None:
    from perdure.domain.attempt import Renewal

    lease = await world.lease()
    await world.start(lease)
    world.advance(1)
    await world.cancel(lease.hold.task_id)
    world.advance(1)
    await world.ledger.renew([Renewal(lease.hold, True, delivered=True)])
    world.advance(1)
    await world.settle(lease, Settlement.acknowledged())
    events = await world.views.events(ORGANIZATION, lease.hold.task_id)
    ladder = [each for each in events if "cancel" in each.type or "deliver" in each.type]
    assert len(ladder) >= 3
    times = [each.at_us for each in ladder]
    assert times == sorted(times)
    assert len(set(times)) == 3


# Purging a queue


async def test_purging_a_queue_cancels_what_waits_and_leaves_what_is_held(world: World) -> None:
    held = await world.lease()
    retrying = await world.lease()
    await world.settle(retrying, retry_in(HOUR))
    waiting = [await world.submit(), await world.submit(delay=HOUR)]
    elsewhere = await world.submit(queue="side")
    foreign = await world.submit(organization="other")
    moved = 0
    while True:
        swept = await world.ledger.purge_queue(ORGANIZATION, "default", "bob", 2)
        assert swept.moved <= 2
        moved += swept.moved
        if not swept.more:
            break
    assert moved == 3
    for task_id in [*waiting, retrying.hold.task_id]:
        task = await world.look(task_id)
        assert (task.state, task.reason) == (TaskState.CANCELLED, Reason.PURGED)
    assert await world.state(held.hold.task_id) is TaskState.LEASED
    assert await world.state(elsewhere) is TaskState.QUEUED
    assert (await world.look(foreign, "other")).state is TaskState.QUEUED


async def test_purging_takes_the_oldest_first(world: World) -> None:
    ids = [await world.submit() for _ in range(5)]
    await world.ledger.purge_queue(ORGANIZATION, "default", "bob", 2)
    assert [await world.state(each) is TaskState.CANCELLED for each in ids] == [True, True, False, False, False]


async def test_a_thousand_cancels_in_one_call(world: World) -> None:
    from perdure.store.ledger import Cancellation

    tasks = [world.task() for _ in range(1000)]
    await world.submit_all(tasks)
    answers = await world.ledger.cancel(
        [Cancellation(ORGANIZATION, each.id, "bob", Reason.USER, None, None, 1) for each in tasks]
    )
    assert all(each.answer is CancelAnswer.CANCELLED for each in answers)
    assert await world.ledger.settle([settling((await world.lease()), DONE)])
