"""Duties are bounded, run by anybody, and repeat their condition in their write."""

import asyncio

import pytest

from conformance.making import (
    DONE,
    FAILED,
    FIXED,
    HOUR,
    KIND,
    ORGANIZATION,
    World,
    doubt_settled,
    retry_in,
    us,
)
from perdure.domain.attempt import Lease
from perdure.domain.settlement import Settlement
from perdure.domain.states import AttemptState, Reason, TaskState
from perdure.store.ledger import Doubtful, Guard, SettleAnswer, Swept, WorkerOrder

# A completion that slips between finding and writing


async def lost(world: World) -> Lease:
    lease = await world.lease()
    world.advance(60)
    return lease


async def found_for(world: World, lease: Lease) -> Doubtful:
    (found,) = [each for each in await world.ledger.find_doubtful(10) if each.hold.task_id == lease.hold.task_id]
    return found


async def overdue(world: World) -> Lease:
    lease = await world.lease(execution_limit=50)
    world.advance(50)
    return lease


async def timed_out(world: World) -> Lease:
    lease = await world.lease(timeout=5)
    await world.start(lease)
    world.advance(35)
    return lease


async def cancel_overdue(world: World) -> Lease:
    lease = await world.lease()
    await world.cancel(lease.hold.task_id, grace_us=us(20))
    world.advance(20)
    return lease


async def revoked(world: World) -> Lease:
    lease = await world.lease()
    await world.ledger.order(ORGANIZATION, "w", WorkerOrder.REVOKE, "bob")
    return lease


async def complete(world: World, lease: Lease) -> None:
    """The holder's result arrives after all, as far as it still may."""
    await world.settle(lease, DONE)


async def another_duty(world: World, lease: Lease) -> None:
    """Another runner of the same duty was faster."""
    assert await world.sweep()


async def another_attempt(world: World, lease: Lease) -> None:
    """Another runner was faster, and the task has been claimed and begun again."""
    await world.sweep()
    await world.worker("v")
    world.advance(10)
    for again in await world.claim(5, "v"):
        await world.start(again)


SLIPS = {
    "timed_out, completed": (timed_out, complete),
    **{
        f"{doubt.__name__}, {slip.__name__}": (doubt, slip)
        for doubt in (lost, overdue, timed_out, cancel_overdue, revoked)
        for slip in (another_duty, another_attempt)
    },
}


@pytest.mark.parametrize("case", SLIPS)
async def test_a_duty_that_comes_second_changes_nothing(world: World, case: str) -> None:
    doubt, slip = SLIPS[case]
    lease = await doubt(world)
    found = await found_for(world, lease)
    await slip(world, lease)
    late = doubt_settled(found, FIXED, True)._replace(digest="the second runner")
    with world.unchanged():
        (answer,) = await world.ledger.settle([late])
    assert answer.answer is SettleAnswer.LEASE_LOST


@pytest.mark.parametrize("guard", [each for each in Guard if each is not Guard.HOLDER])
@pytest.mark.parametrize("state", ["leased", "running", "cancelling"])
async def test_no_guard_holds_for_an_attempt_that_is_well(world: World, guard: Guard, state: str) -> None:
    lease = await world.lease(timeout=10)
    if state != "leased":
        await world.start(lease)
    if state == "cancelling":
        await world.cancel(lease.hold.task_id)
    world.advance(1)
    with world.unchanged():
        for each in (FAILED, Settlement.revoked_and_queued(), Settlement.cancel_overdue(), retry_in(1)):
            assert (await world.settle(lease, each, guard)).answer is SettleAnswer.LEASE_LOST


async def test_a_renewal_that_slips_in_saves_nothing_once_the_lease_is_over(world: World) -> None:
    lease = await lost(world)
    found = await found_for(world, lease)
    assert await world.renew(lease) is None
    (answer,) = await world.ledger.settle([doubt_settled(found, FIXED, True)])
    assert answer.state is TaskState.QUEUED


async def test_two_runners_at_once_lose_each_attempt_once(world: World) -> None:
    await world.submit_all([world.task() for _ in range(50)])
    leases = await world.claim(50)
    world.advance(60)
    both = await asyncio.gather(world.sweep(), world.sweep())
    applied = [each for answers in both for each in answers if each.answer is SettleAnswer.APPLIED]
    assert len(applied) == 50
    for lease in leases[::10]:
        assert (await world.look(lease.hold.task_id)).losses == 1


async def test_what_is_found_is_bounded_and_comes_to_an_end(world: World) -> None:
    await world.submit_all([world.task() for _ in range(25)])
    await world.claim(25)
    world.advance(60)
    sizes = []
    while answers := await world.sweep(limit=10):
        sizes.append(len(answers))
    assert sum(sizes) == 25
    assert max(sizes) <= 10


# Promoting


async def test_promotion_is_bounded_tells_whether_there_is_more_and_when_the_next_is_due(world: World) -> None:
    await world.submit_all([world.task(delay=10) for _ in range(5)])
    await world.submit(delay=30)
    nothing = await world.ledger.promote(3)
    assert nothing == Swept(0, await world.now_us() + us(10), False)
    world.advance(10)
    first = await world.ledger.promote(3)
    assert (first.moved, first.more) == (3, True)
    second = await world.ledger.promote(3)
    assert (second.moved, second.more) == (2, False)
    assert second.next_us == await world.now_us() + us(20)


async def test_a_cancel_before_the_promotion_wins(world: World) -> None:
    task_id = await world.submit(delay=10)
    world.advance(10)
    await world.cancel(task_id)
    with world.unchanged():
        assert (await world.ledger.promote(10)).moved == 0


async def test_a_cancel_after_the_promotion_wins_too(world: World) -> None:
    task_id = await world.submit(delay=10)
    world.advance(10)
    await world.ledger.promote(10)
    await world.cancel(task_id)
    assert await world.claim(5) == []


async def test_an_expired_task_is_not_promoted(world: World) -> None:
    task_id = await world.submit(delay=10, ttl=20)
    world.advance(20)
    await world.ledger.promote(10)
    await world.ledger.expire(10)
    assert await world.state(task_id) is TaskState.EXPIRED
    assert await world.claim(5) == []


async def test_a_promoted_task_takes_its_place_behind_what_waits(world: World) -> None:
    delayed = await world.submit(delay=10)
    world.advance(10)
    waiting = await world.submit()
    await world.ledger.promote(10)
    claimed = [each.hold.task_id for each in await world.claim(5)]
    assert sorted(claimed) == sorted([waiting, delayed])


async def test_two_promotions_at_once_promote_each_task_once(world: World) -> None:
    await world.submit_all([world.task(delay=10) for _ in range(20)])
    world.advance(10)
    swept = await asyncio.gather(world.ledger.promote(100), world.ledger.promote(100))
    assert sum(each.moved for each in swept) == 20
    assert len(await world.claim(100)) == 20


# Expiring


async def test_expiry_is_bounded_and_tells_when_the_next_is_due(world: World) -> None:
    await world.submit_all([world.task(ttl=10) for _ in range(5)])
    await world.submit(ttl=30)
    world.advance(10)
    moved = 0
    for _ in range(10):
        swept = await world.ledger.expire(2)
        moved += swept.moved
        if not swept.more:
            break
    assert moved == 5
    assert swept.next_us == await world.now_us() + us(20)


async def test_a_paused_queue_still_expires(world: World) -> None:
    task_id = await world.submit(ttl=10)
    await world.definitions.put(ORGANIZATION, "queue", "default", '{"paused":true}', "bob")
    world.advance(10)
    await world.ledger.expire(10)
    task = await world.look(task_id)
    assert (task.state, task.reason, task.finished_us) == (TaskState.EXPIRED, Reason.TTL, await world.now_us())


async def test_expiry_never_touches_what_is_held(world: World) -> None:
    leased = await world.lease(ttl=10)
    running = await world.lease(ttl=10)
    await world.start(running)
    world.advance(10)
    with world.unchanged():
        assert (await world.ledger.expire(10)).moved == 0
    await world.finish(running)
    assert await world.state(leased.hold.task_id) is TaskState.LEASED


async def test_a_waiting_task_past_its_deadline_is_dead_lettered_or_failed_by_its_queue(world: World) -> None:
    kept = await world.lease(execution_limit=30)
    await world.settle(kept, retry_in(HOUR))
    await world.definitions.put(ORGANIZATION, "queue", "plain", '{"dead_letters":false}', "bob")
    await world.worker("v", queues=("plain",))
    await world.submit(queue="plain", execution_limit=30)
    (plain,) = await world.claim(1, "v")
    await world.settle(plain, Settlement.handed_back())
    world.advance(30)
    await world.ledger.expire(10)
    dead, failed = await world.look(kept.hold.task_id), await world.look(plain.hold.task_id)
    assert (dead.state, dead.reason) == (TaskState.DEAD_LETTERED, Reason.DEADLINE)
    assert (failed.state, failed.reason) == (TaskState.FAILED, Reason.DEADLINE)
    assert dead.last_error is not None


async def test_a_task_that_never_ran_has_no_deadline(world: World) -> None:
    task_id = await world.submit(execution_limit=10)
    world.advance(100 * HOUR)
    await world.ledger.expire(10)
    assert await world.state(task_id) is TaskState.QUEUED


async def test_a_late_start_releases_the_attempt(world: World) -> None:
    lease = await world.lease(ttl=10)
    world.advance(10)
    answer = await world.settle(lease, Settlement.expired_unstarted())
    assert answer.state is TaskState.EXPIRED
    (attempt,) = await world.views.attempts(ORGANIZATION, lease.hold.task_id)
    assert attempt.state is AttemptState.RELEASED


# Postponing


async def test_a_postponed_task_waits_for_its_new_time(world: World) -> None:
    task_id = await world.submit()
    now = await world.now_us()
    assert await world.ledger.postpone(ORGANIZATION, task_id, now + us(10))
    assert await world.state(task_id) is TaskState.PENDING
    assert await world.claim(5) == []
    assert await world.ledger.postpone(ORGANIZATION, task_id, now + us(20))
    world.advance(10)
    assert await world.claim(5) == []
    world.advance(10)
    assert len(await world.claim(5)) == 1


async def test_a_task_that_waits_for_a_parent_is_not_postponed(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]})
    with world.unchanged():
        assert not await world.ledger.postpone(ORGANIZATION, family["b"], await world.now_us() + us(10))
    world.advance(10)
    await world.ledger.promote(10)
    assert await world.state(family["b"]) is TaskState.PENDING


async def test_nobody_postpones_another_organizations_task(world: World) -> None:
    task_id = await world.submit()
    with world.unchanged():
        assert not await world.ledger.postpone("other", task_id, await world.now_us() + us(10))


# Unroutable


async def unroutable(world: World, after: float = 60, active: float = 120) -> int:
    return (await world.ledger.fail_unroutable(us(after), us(active), 100)).moved


async def beat(world: World, seconds: float, *workers: str) -> None:
    """Let time pass while these workers say that they are there."""
    passed = 0.0
    while passed < seconds:
        step = min(30.0, seconds - passed)
        world.advance(step)
        passed += step
        for worker in workers:
            await world.ledger.heartbeat(worker, 10)
        await unroutable(world)


async def test_a_kind_that_nobody_has_fails_after_a_while(world: World) -> None:
    task_id = await world.submit(kind="nobody.has.it")
    known = await world.submit()
    await unroutable(world)
    await beat(world, 59, "w")
    assert await world.state(task_id) is TaskState.QUEUED
    await beat(world, 1, "w")
    task = await world.look(task_id)
    assert (task.state, task.reason) == (TaskState.DEAD_LETTERED, Reason.UNROUTABLE)
    assert await world.state(known) is TaskState.QUEUED


async def test_a_worker_with_the_kind_stops_the_count(world: World) -> None:
    task_id = await world.submit(kind="rare")
    await unroutable(world)
    await beat(world, 50, "w")
    await world.worker("v", kinds=("rare",))
    await beat(world, 30, "w", "v")
    assert await world.state(task_id) is TaskState.QUEUED
    assert [each.hold.task_id for each in await world.claim(1, "v")] == [task_id]


async def test_the_time_without_any_worker_does_not_count(world: World) -> None:
    task_id = await world.submit(kind="rare")
    await world.ledger.leave("w")
    for _ in range(20):
        world.advance(30)
        await unroutable(world)
    assert await world.state(task_id) is TaskState.QUEUED


async def test_workers_of_another_queue_do_not_count(world: World) -> None:
    task_id = await world.submit(kind="rare", queue="side")
    await unroutable(world)
    await beat(world, 120, "w")
    assert await world.state(task_id) is TaskState.QUEUED


async def test_an_unroutable_task_of_a_job_fails_its_children(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]}, tasks={"a": {"kind": "rare"}})
    await unroutable(world)
    await beat(world, 60, "w")
    await world.cascade()
    assert await world.states(family) == {"a": TaskState.DEAD_LETTERED, "b": TaskState.CANCELLED}


# Workers


async def test_a_worker_is_listed_as_it_said_with_what_it_holds(world: World) -> None:
    await world.worker("v", kinds=(KIND, "other"), capabilities=("gpu",), capacity=7, build="b2")
    await world.submit()
    await world.claim(1, "v")
    (view,) = [each for each in await world.views.workers(ORGANIZATION, us(120)) if each.id == "v"]
    assert (view.kinds, view.capabilities, view.capacity, view.build) == ((KIND, "other"), ("gpu",), 7, "b2")
    assert (view.leases, view.order, view.left_us) == (1, "work", None)
    world.advance(121)
    assert await world.views.workers(ORGANIZATION, us(120)) == []
    await world.ledger.heartbeat("v", 8)
    (view,) = await world.views.workers(ORGANIZATION, us(120))
    assert (view.id, view.capacity) == ("v", 8)


@pytest.mark.parametrize("worker", ["nobody", "foreign"])
async def test_an_order_for_an_unknown_worker_or_one_of_other_organizations_is_not_found(
    world: World, worker: str
) -> None:
    from perdure.errors import NotFound

    await world.worker("foreign", organizations=("other",))
    with world.unchanged(), pytest.raises(NotFound):
        await world.ledger.order(ORGANIZATION, worker, WorkerOrder.DRAIN, "bob")
