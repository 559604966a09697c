"""What is left to the cascade: the children of tasks that ended because of a parent, and nothing else."""

from conformance.making import FAILED, World
from perdure.domain.states import TaskState
from perdure.store.ledger import Swept

S = TaskState
NOTHING = Swept(0, None, more=False, quiet=True)


async def test_a_task_that_ends_with_its_parent_and_has_no_children_leaves_nothing(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]})
    await world.run(family, "a", settlement=FAILED)
    assert await world.states(family) == {"a": S.DEAD_LETTERED, "b": S.CANCELLED}
    with world.unchanged():
        assert await world.ledger.cascade(10) == NOTHING


async def test_a_cascade_goes_one_level_at_a_time_and_says_whether_more_is_left(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"], "c": ["b"], "d": ["c"]})
    await world.run(family, "a", settlement=FAILED)
    assert await world.ledger.cascade(1) == Swept(1, None, more=True)
    assert (await world.states(family))["d"] is S.PENDING
    assert await world.ledger.cascade(1) == Swept(1, None, more=False)
    assert (await world.states(family))["d"] is S.CANCELLED


async def test_a_task_that_has_another_parent_to_wait_for_leaves_nothing(world: World) -> None:
    family = await world.submit_job(
        {"a": [], "b": [], "c": ["a", "b"], "d": ["c"]}, tasks={"c": {"trigger": "all_done"}}
    )
    await world.run(family, "a", "b", settlement=FAILED)
    assert (await world.states(family))["c"] is S.QUEUED
    with world.unchanged():
        assert await world.ledger.cascade(10) == NOTHING
