"""A claim that is sent again, however late."""

from conformance.making import World
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState
from perdure.store.ledger import ClaimRequest


async def test_a_claim_repeated_after_its_attempt_ended_makes_no_second_attempt_of_that_id(world: World) -> None:
    task = await world.submit()
    request = ClaimRequest("w", [(world.ids.new(), world.ids.token())])
    (lease,) = await world.ledger.claim(request)
    await world.settle(lease, Settlement.handed_back())
    assert await world.ledger.claim(request) == []
    assert await world.state(task) is TaskState.QUEUED
    (other,) = await world.claim()
    assert other.hold.task_id == task
    assert other.hold.attempt_id != lease.hold.attempt_id


async def test_a_claim_repeated_after_its_attempt_ended_may_have_another_task(world: World) -> None:
    await world.submit()
    request = ClaimRequest("w", [(world.ids.new(), world.ids.token())])
    (lease,) = await world.ledger.claim(request)
    await world.settle(lease, Settlement.gave_up("not needed"))
    other = await world.submit()
    (again,) = await world.ledger.claim(request)
    assert again.hold.task_id == other
