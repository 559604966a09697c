"""Redrives with another payload: the unique key and the gates that it makes hold from then on, the old ones no more."""

import pytest

from conformance.making import FAILED, ORGANIZATION, World
from conformance.uniques import KEY, in_state, options, submit, try_submit
from perdure.domain.gate import Gate, GateSort
from perdure.domain.states import TaskState
from perdure.domain.task import Body
from perdure.errors import PerdureError, UniqueConflict
from perdure.store.ledger import Redrive

DEAD = TaskState.DEAD_LETTERED
OTHER = 'work {"customer":"other"}'
THIRD = 'work {"customer":"third"}'
PAYLOAD = Body(b'{"customer":"other"}')


def gate(customer: str) -> Gate:
    return Gate(GateSort.CONCURRENCY, "work by customer", f'"{customer}"', 1)


async def edit(world: World, task: str, key: str = OTHER, gates: tuple[Gate, ...] = ()) -> TaskState | PerdureError:
    """Redrive a task with a payload that makes this key and these gates."""
    return await world.redrive(task, payload=PAYLOAD, options=options(key=key, gates=gates))


async def holder(world: World, key: str) -> str | None:
    """Who holds a key, as one learns who comes for it: its holder's id, or none, and then the key is taken."""
    answer = await try_submit(world, key=key)
    return answer.task_id if isinstance(answer, UniqueConflict) else None


async def test_the_new_key_is_held_and_the_old_one_is_free(world: World) -> None:
    task = await in_state(world, DEAD)
    assert await edit(world, task) is TaskState.QUEUED
    assert await holder(world, OTHER) == task
    assert await holder(world, KEY) is None
    lease = await world.claim_one()
    assert (lease.hold.task_id, lease.payload) == (task, PAYLOAD)


async def test_the_new_key_goes_with_the_task_and_its_next_redrive(world: World) -> None:
    task = await in_state(world, DEAD)
    await edit(world, task)
    await world.finish(await world.claim_one(), settlement=FAILED)
    assert await world.redrive(task) is TaskState.QUEUED
    assert await holder(world, OTHER) == task
    assert await holder(world, KEY) is None


async def test_it_is_refused_while_another_holds_the_new_key_and_keeps_its_own(world: World) -> None:
    task = await in_state(world, DEAD, states=("running", "dead_lettered"))
    other = await submit(world, key=OTHER)
    with world.unchanged():
        refused = await edit(world, task)
    assert isinstance(refused, UniqueConflict)
    assert (refused.task_id, refused.key) == (other.id, OTHER)
    answer = await try_submit(world, states=("running", "dead_lettered"))
    assert isinstance(answer, UniqueConflict)
    assert answer.task_id == task


async def test_an_old_key_that_another_holds_by_now_stays_with_that(world: World) -> None:
    task = await in_state(world, DEAD)
    other = await submit(world)
    assert await edit(world, task) is TaskState.QUEUED
    assert await holder(world, KEY) == other.id


async def test_an_old_key_that_nobody_holds_any_more_is_held_by_nobody(world: World) -> None:
    first, second = await in_state(world, DEAD), await in_state(world, DEAD)
    third = await submit(world, key=THIRD, delay=60)
    assert await edit(world, second) is TaskState.QUEUED
    with world.unchanged():
        refused = await edit(world, first, THIRD)
    assert isinstance(refused, UniqueConflict)
    assert refused.task_id == third.id
    assert await edit(world, first, 'work {"customer":"fourth"}') is TaskState.QUEUED
    assert KEY not in {row["key"] for row in world.snapshot()["unique_keys"]}


async def test_of_two_that_come_to_one_key_in_a_call_the_first_has_it(world: World) -> None:
    first, second = await in_state(world, DEAD), await in_state(world, DEAD, key=THIRD)
    anew = options(key=OTHER)
    one, two = await world.ledger.redrive(
        [Redrive(ORGANIZATION, each, "bob", PAYLOAD, 0, anew) for each in (first, second)]
    )
    assert one is TaskState.QUEUED
    assert isinstance(two, UniqueConflict)
    assert two.task_id == first
    assert await world.state(second) is DEAD


async def test_two_may_change_their_keys_for_one_another(world: World) -> None:
    first, second = await in_state(world, DEAD), await in_state(world, DEAD, key=OTHER)
    asked = [(first, OTHER), (second, KEY)]
    answers = await world.ledger.redrive(
        [Redrive(ORGANIZATION, each, "bob", PAYLOAD, 0, options(key=key)) for each, key in asked]
    )
    assert answers == [TaskState.QUEUED] * 2
    assert [await holder(world, KEY), await holder(world, OTHER)] == [second, first]


@pytest.mark.parametrize("before", [(), (gate("acme"),)])
async def test_it_waits_at_the_gates_of_its_new_payload(world: World, before: tuple[Gate, ...]) -> None:
    task = await in_state(world, DEAD, gates=before)
    running = await submit(world, key=THIRD, gates=(gate("other"),))
    assert await edit(world, task, gates=(gate("other"),)) is TaskState.PENDING
    lease = await world.claim_one()
    assert lease.hold.task_id == running.id
    assert await world.claim(1) == []
    await world.finish(lease)
    assert (await world.claim_one()).hold.task_id == task


async def test_it_leaves_the_gates_of_its_old_payload(world: World) -> None:
    task = await in_state(world, DEAD, gates=(gate("acme"),))
    await submit(world, key=THIRD, gates=(gate("acme"),))
    assert await edit(world, task) is TaskState.QUEUED
    assert len(await world.claim(2)) == 2
