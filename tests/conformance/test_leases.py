"""A lease is good until its instant by the store's clock, and not one microsecond longer."""

import pytest

from conformance.making import DONE, HOUR, ORGANIZATION, World, retry_in, us
from perdure.domain.attempt import Renewal
from perdure.domain.settlement import Settlement
from perdure.domain.states import AttemptState, Reason, TaskState
from perdure.store.ledger import Control, Guard, Renewed, SettleAnswer, WorkerOrder


async def test_a_renewal_extends_the_lease_from_now(world: World) -> None:
    lease = await world.lease(lease=20)
    world.advance(15)
    assert await world.renew(lease) == Renewed(us(20), None)
    assert (await world.look(lease.hold.task_id)).lease_expires_us == await world.now_us() + us(20)


async def test_a_renewal_alone_does_not_start_the_task(world: World) -> None:
    lease = await world.lease()
    assert await world.renew(lease)
    assert await world.state(lease.hold.task_id) is TaskState.LEASED
    assert await world.start(lease)
    assert await world.state(lease.hold.task_id) is TaskState.RUNNING


async def test_a_started_task_stays_started(world: World) -> None:
    lease = await world.lease()
    await world.start(lease)
    begun = await world.now_us()
    world.advance(10)
    await world.renew(lease)
    await world.start(lease)
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.started_us) == (TaskState.RUNNING, begun)


async def test_renewals_for_ever_end_at_the_deadline(world: World) -> None:
    lease = await world.lease(lease=20, execution_limit=50)
    world.advance(15)
    assert await world.renew(lease) == Renewed(us(20), None)
    world.advance(19)
    assert await world.renew(lease) == Renewed(us(16), None)
    world.advance(10)
    assert await world.renew(lease) == Renewed(us(6), None)
    world.advance(6)
    with world.unchanged():
        assert await world.renew(lease) is None
    (answer,) = await world.sweep()
    assert answer.state is TaskState.DEAD_LETTERED
    assert (await world.look(lease.hold.task_id)).reason is Reason.DEADLINE


async def test_a_first_lease_reaches_no_further_than_the_deadline(world: World) -> None:
    lease = await world.lease(lease=60, execution_limit=50)
    assert lease.deadline_us == us(50)
    assert (await world.look(lease.hold.task_id)).lease_expires_us == await world.now_us() + us(50)


async def test_a_lease_lives_in_its_last_microsecond_and_is_over_in_the_next(world: World) -> None:
    first, second = await world.lease(), await world.lease()
    world.clock.advance(us(60) - 1)
    assert await world.ledger.find_doubtful(10) == []
    assert (await world.settle(first, DONE)).answer is SettleAnswer.APPLIED
    world.clock.advance(1)
    (found,) = await world.ledger.find_doubtful(10)
    assert found.hold.attempt_id == second.hold.attempt_id
    assert found.guard is Guard.LEASE_OVER
    assert (await world.settle(second, DONE)).answer is SettleAnswer.LEASE_LOST
    assert await world.renew(second) is None


async def test_a_lease_that_ran_out_cannot_be_renewed_even_before_anybody_noticed(world: World) -> None:
    lease = await world.lease()
    world.advance(61)
    with world.unchanged():
        assert await world.renew(lease, started=True) is None


async def test_a_renewal_while_cancelling_says_how_long_remains(world: World) -> None:
    lease = await world.lease()
    await world.start(lease)
    await world.cancel(lease.hold.task_id, grace_us=us(30))
    world.advance(10)
    assert await world.renew(lease) == Renewed(us(20), us(20))
    task = await world.look(lease.hold.task_id)
    assert task.state is TaskState.CANCELLING
    assert task.lease_expires_us == await world.now_us() + us(20)


async def test_a_renewal_while_cancelling_never_extends_past_a_short_lease(world: World) -> None:
    lease = await world.lease(lease=6)
    await world.cancel(lease.hold.task_id, grace_us=us(30))
    world.advance(4)
    assert await world.renew(lease) == Renewed(us(6), us(26))


async def test_a_renewal_past_the_cancel_deadline_is_refused_and_changes_nothing(world: World) -> None:
    lease = await world.lease()
    await world.start(lease)
    await world.cancel(lease.hold.task_id, grace_us=us(5))
    world.advance(5)
    with world.unchanged():
        assert await world.renew(lease) is None
    assert (await world.settle(lease, DONE)).state is TaskState.CANCELLED


async def test_a_delivered_cancel_is_in_the_history_once(world: World) -> None:
    lease = await world.lease()
    await world.cancel(lease.hold.task_id)
    for _ in range(3):
        world.advance(1)
        await world.ledger.renew([Renewal(lease.hold, True, delivered=True)])
    events = [each.type for each in await world.views.events(ORGANIZATION, lease.hold.task_id)]
    assert len([each for each in events if "deliver" in each]) == 1


async def test_control_lists_the_cancels_of_this_worker_only(world: World) -> None:
    await world.worker("v")
    mine, other = await world.lease(), await world.lease()
    await world.submit()
    (theirs,) = await world.claim(1, "v")
    for lease in (mine, theirs):
        await world.cancel(lease.hold.task_id, grace_us=us(30))
    world.advance(10)
    with world.unchanged():
        assert await world.ledger.control("w") == [Control(mine.hold.attempt_id, us(20))]
        assert await world.ledger.control("nobody") == []
    assert other.hold.attempt_id not in {each.attempt_id for each in await world.ledger.control("v")}


async def test_a_revoked_worker_cannot_renew_or_settle(world: World) -> None:
    lease = await world.lease()
    await world.ledger.order(ORGANIZATION, "w", WorkerOrder.REVOKE, "bob")
    with world.unchanged(late_results=True):
        assert await world.renew(lease) is None
        assert (await world.settle(lease, DONE)).answer is SettleAnswer.LEASE_LOST


async def test_a_revoked_workers_tasks_go_back_to_the_front_at_no_cost(world: World) -> None:
    lease = await world.lease()
    waiting = await world.submit()
    await world.ledger.order(ORGANIZATION, "w", WorkerOrder.REVOKE, "bob")
    (found,) = await world.ledger.find_doubtful(10)
    assert found.guard is Guard.WORKER_REVOKED
    (answer,) = await world.sweep()
    assert answer.state is TaskState.QUEUED
    await world.worker("v")
    claimed = await world.claim(5, "v")
    assert [each.hold.task_id for each in claimed] == [lease.hold.task_id, waiting]
    task = await world.look(lease.hold.task_id)
    assert (task.attempt, task.losses) == (1, 0)
    attempts = await world.views.attempts(ORGANIZATION, lease.hold.task_id)
    assert (attempts[0].state, attempts[0].reason) == (AttemptState.CANCELLED, Reason.REVOKED)


@pytest.mark.parametrize("order", [WorkerOrder.PAUSE, WorkerOrder.DRAIN])
async def test_a_paused_or_draining_worker_keeps_what_it_holds(world: World, order: WorkerOrder) -> None:
    lease = await world.lease()
    await world.ledger.order(ORGANIZATION, "w", order, "bob")
    assert await world.renew(lease, started=True)
    assert await world.ledger.find_doubtful(10) == []
    assert (await world.settle(lease, DONE)).answer is SettleAnswer.APPLIED


async def test_a_worker_that_left_loses_its_leases_when_they_run_out(world: World) -> None:
    lease = await world.lease()
    await world.ledger.leave("w")
    assert await world.ledger.find_doubtful(10) == []
    world.advance(60)
    (answer,) = await world.sweep()
    assert answer.state is TaskState.QUEUED
    assert (await world.look(lease.hold.task_id)).losses == 1


async def test_a_worker_that_holds_leases_past_its_own_row_is_no_obstacle(world: World) -> None:
    lease = await world.lease()
    await world.worker("w", capacity=0)
    assert await world.renew(lease)
    await world.worker("w")
    await world.finish(lease)


async def test_a_handler_past_its_timeout_and_grace_is_found(world: World) -> None:
    lease = await world.lease(timeout=10)
    await world.start(lease)
    world.advance(39)
    assert await world.renew(lease)
    assert await world.ledger.find_doubtful(10) == []
    world.advance(1)
    (found,) = await world.ledger.find_doubtful(10)
    assert found.guard is Guard.TIMEOUT_OVER
    (answer,) = await world.sweep()
    assert answer.state is TaskState.RETRYING
    task = await world.look(lease.hold.task_id)
    assert (task.attempt, task.losses) == (2, 0)


async def test_a_prefetched_task_has_no_timeout_before_it_begins(world: World) -> None:
    lease = await world.lease(timeout=10)
    for _ in range(4):
        world.advance(30)
        assert await world.renew(lease)
    assert await world.ledger.find_doubtful(10) == []


async def test_the_timeout_counts_from_the_start_of_this_attempt(world: World) -> None:
    lease = await world.lease(timeout=10)
    await world.start(lease)
    world.advance(20)
    await world.settle(lease, Settlement.handed_back())
    again = await world.claim_one()
    await world.start(again)
    world.advance(25)
    await world.renew(again)
    assert await world.ledger.find_doubtful(10) == []


async def test_a_retry_clears_what_the_last_attempt_had(world: World) -> None:
    lease = await world.lease()
    await world.start(lease)
    await world.settle(lease, retry_in(10))
    task = await world.look(lease.hold.task_id)
    assert (task.worker, task.lease_expires_us) == (None, None)
    world.advance(10)
    again = await world.claim_one()
    assert (await world.look(again.hold.task_id)).state is TaskState.LEASED
    assert (await world.look(again.hold.task_id)).worker == "w"


async def test_time_alone_changes_nothing_in_the_store(world: World) -> None:
    await world.lease(timeout=1, execution_limit=HOUR)
    await world.submit(ttl=5, delay=1)
    with world.unchanged():
        world.advance(100 * HOUR)
        await world.ledger.find_doubtful(10)
        await world.ledger.facts([])
        await world.views.overview(ORGANIZATION)
