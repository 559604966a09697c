"""A debounce with another payload: the task is limited by what that payload makes of it, and not by its first one."""

from conformance.making import World
from conformance.uniques import options, submit
from perdure.domain.gate import Gate, GateSort
from perdure.domain.states import TaskState
from perdure.store.ledger import Submitted

ANN, BOB = ([Gate(GateSort.CONCURRENCY, "work by customer", f'"{name}"', 1)] for name in ("ann", "bob"))
WAIT = 5


async def pass_time(world: World) -> None:
    """Let what was debounced be due."""
    world.advance(WAIT)
    await world.ledger.promote(100)


async def test_it_waits_where_the_new_payload_is_limited(world: World) -> None:
    await submit(world, key="work other", gates=BOB)
    other = await world.claim_one()
    first = await submit(world, gates=ANN)
    assert first.state is TaskState.QUEUED
    await submit(world, "debounce", wait=WAIT, gates=BOB)
    await pass_time(world)
    assert await world.state(first.id) is TaskState.PENDING
    await world.finish(other)
    assert (await world.claim_one()).hold.task_id == first.id


async def test_it_waits_no_more_where_the_old_payload_was_limited(world: World) -> None:
    await submit(world, key="work other", gates=ANN)
    await world.claim_one()
    first = await submit(world, gates=ANN)
    assert first.state is TaskState.PENDING
    await submit(world, "debounce", wait=WAIT, gates=BOB)
    await pass_time(world)
    assert (await world.claim_one()).hold.task_id == first.id
    third = await submit(world, key="work third", gates=BOB)
    assert third.state is TaskState.PENDING


async def test_limits_come_and_go_with_the_payload(world: World) -> None:
    await submit(world, key="work other", gates=ANN)
    await world.claim_one()
    first = await submit(world)
    await submit(world, "debounce", wait=WAIT, gates=ANN)
    await pass_time(world)
    assert await world.state(first.id) is TaskState.PENDING
    await submit(world, "debounce", wait=WAIT)
    await pass_time(world)
    assert (await world.claim_one()).hold.task_id == first.id


async def test_of_several_in_a_call_the_last_one_limits(world: World) -> None:
    await submit(world, key="work other", gates=BOB)
    await world.claim_one()
    tasks = [world.task(options=options("debounce", wait=WAIT, gates=gates)) for gates in (ANN, (), BOB)]
    first, *_ = await world.submit_all(tasks)
    assert isinstance(first, Submitted)
    await pass_time(world)
    assert await world.state(first.id) is TaskState.PENDING
