"""A suspension of losses holds on the scale of time that it was made on, and no longer than a lease can be."""

from conformance.making import DONE, HOUR, World, us
from perdure.domain import limits
from perdure.domain.states import TaskState

DAY = 24 * HOUR


async def test_a_suspension_from_before_a_jump_back_holds_nothing_up(world: World) -> None:
    world.advance(DAY)
    await world.ledger.suspend_losses(await world.now_us() + us(60))
    world.advance(-DAY)
    lease = await world.lease()
    assert await world.ledger.losses_suspended_until() == 0
    world.advance(60)
    (answer,) = await world.sweep()
    assert answer.state is TaskState.QUEUED
    assert await world.state(lease.hold.task_id) is TaskState.QUEUED


async def test_a_suspension_after_a_jump_back_takes_the_place_of_the_one_before(world: World) -> None:
    world.advance(DAY)
    await world.ledger.suspend_losses(await world.now_us() + us(60))
    world.advance(-DAY)
    await world.lease()
    until = await world.now_us() + us(90)
    await world.ledger.suspend_losses(until)
    assert await world.ledger.losses_suspended_until() == until
    world.advance(60)
    assert await world.ledger.find_doubtful(10) == []
    world.advance(30)
    assert len(await world.ledger.find_doubtful(10)) == 1


async def test_no_suspension_is_longer_than_a_lease_can_be(world: World) -> None:
    lease = await world.lease(lease=HOUR)
    await world.ledger.suspend_losses(await world.now_us() + us(DAY))
    assert await world.ledger.losses_suspended_until() == await world.now_us() + limits.LEASE_MAX_US
    assert (await world.settle(lease, DONE)).state is TaskState.SUCCEEDED
    await world.ledger.heartbeat("w", 10)
    await world.lease()
    world.advance(limits.LEASE_MAX_US / us(1) - 1)
    assert await world.ledger.find_doubtful(10) == []
    world.advance(1)
    assert len(await world.ledger.find_doubtful(10)) == 1
