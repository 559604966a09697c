"""Unique tasks beside all else: full queues, jobs, redrives, and what is removed."""

from typing import Any

import pytest

from conformance.families import held
from conformance.growths import grow, grown
from conformance.making import FAILED, ORGANIZATION, World
from conformance.uniques import CREATED, DEBOUNCED, EXISTING, in_state, options, submit, try_submit
from perdure.domain.retention import Retention
from perdure.domain.schedule import Cause
from perdure.domain.states import TaskState
from perdure.errors import Overloaded, UniqueConflict
from perdure.store.ledger import JobSubmitted, Submitted
from perdure.store.schedules import Asked


async def test_a_full_queue_refuses_what_would_be_stored_and_leaves_the_holder_alone(world: World) -> None:
    await world.definitions.put("default", "queue", "default", '{"depth":1}', "bob")
    first = await submit(world)
    with world.unchanged():
        assert isinstance(await try_submit(world, "replace"), Overloaded)
        assert (await submit(world, "return_existing")).id == first.id
        twins = [world.task(options=options("return_existing", key="work other")) for _ in range(3)]
        assert [type(each) for each in await world.submit_all(twins)] == [Overloaded] * 3
    assert (await submit(world, "debounce", wait=5)).outcome is DEBOUNCED
    await world.finish(*(await _claimed(world, 5)))
    assert (await submit(world, key="work other")).outcome is CREATED


async def _claimed(world: World, seconds: float) -> list[Any]:
    world.advance(seconds)
    return list(await world.claim(5))


async def test_a_job_takes_its_keys_or_is_refused_whole(world: World) -> None:
    unique = {"b": {"options": options()}}
    family = await world.submit_job({"a": [], "b": ["a"]}, tasks=unique)
    assert isinstance(await try_submit(world), UniqueConflict)
    with world.unchanged():
        (refused,) = await world.ledger.submit_jobs([world.job({"a": [], "b": ["a"]}, tasks=unique)])
    assert isinstance(refused, UniqueConflict)
    assert (refused.task_id, refused.names) == (family["b"], ["b"])
    await world.run(family, "a")
    await world.run(family, "b")
    (again,) = await world.ledger.submit_jobs([world.job({"a": [], "b": ["a"]}, tasks=unique)])
    assert isinstance(again, JobSubmitted)


async def test_two_tasks_of_a_job_with_one_key_refuse_it_and_keep_nothing(world: World) -> None:
    unique = {name: {"options": options()} for name in ("a", "b")}
    with world.unchanged():
        (refused,) = await world.ledger.submit_jobs([world.job({"a": [], "b": ["a"]}, tasks=unique)])
    assert isinstance(refused, UniqueConflict)


async def test_a_task_of_a_job_is_neither_replaced_nor_debounced(world: World) -> None:
    family = await world.submit_job({"a": []}, tasks={"a": {"options": options()}})
    with world.unchanged():
        for choice, given in (("replace", {}), ("debounce", {"wait": 5})):
            answer = await try_submit(world, choice, **given)
            assert isinstance(answer, UniqueConflict)
            assert answer.task_id == family["a"]


async def test_a_growth_takes_its_keys_or_is_refused_whole(world: World) -> None:
    family = await world.submit_job({"a": []})
    (lease,) = await held(world, family, "a")
    other = await submit(world)
    unique = {"c": {"options": options()}}
    with world.unchanged():
        refused = await grow(world, lease, {"b": [], "c": []}, tasks=unique)
    assert isinstance(refused, UniqueConflict)
    assert (refused.task_id, refused.names) == (other.id, ["c"])
    await world.cancel(other.id)
    await grown(world, family, lease, {"b": [], "c": []}, tasks=unique)
    answer = await try_submit(world)
    assert isinstance(answer, UniqueConflict)
    assert answer.task_id == family["c"]


@pytest.mark.parametrize("choice", ["reject", "return_existing"])
async def test_an_instant_whose_task_is_there_already_makes_nothing(world: World, choice: str) -> None:
    first = await submit(world)
    work = world.task(options=options(choice))
    with world.unchanged():
        (made,) = await world.store.schedules.ask(Asked(ORGANIZATION, "nightly", Cause.TRIGGER, [(1, work)]))
    assert isinstance(made.error, UniqueConflict)
    assert made.error.task_id == first.id


async def test_a_redrive_takes_the_key_again(world: World) -> None:
    first = await in_state(world, TaskState.DEAD_LETTERED)
    assert await world.redrive(first) is TaskState.QUEUED
    answer = await try_submit(world)
    assert isinstance(answer, UniqueConflict)
    assert answer.task_id == first


async def test_a_redrive_is_refused_while_another_holds_the_key(world: World) -> None:
    first = await in_state(world, TaskState.DEAD_LETTERED)
    second = await submit(world)
    with world.unchanged():
        refused = await world.redrive(first)
    assert isinstance(refused, UniqueConflict)
    assert refused.task_id == second.id
    await world.finish(await world.claim_one())
    assert await world.redrive(first) is TaskState.QUEUED


async def test_a_retry_of_a_job_takes_keys_again_or_is_refused(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]}, tasks={"b": {"options": options()}})
    await world.run(family, "a", settlement=FAILED)
    other = await submit(world)
    with world.unchanged(), pytest.raises(UniqueConflict) as refused:
        await world.ledger.retry_job("default", family.id, "bob")
    assert refused.value.task_id == other.id
    await world.cancel(other.id)
    await world.ledger.retry_job("default", family.id, "bob")
    answer = await try_submit(world)
    assert isinstance(answer, UniqueConflict)
    assert answer.task_id == family["b"]


KEEP_NOTHING = Retention(keep_us=0)


async def test_a_removed_task_leaves_no_key(world: World) -> None:
    await in_state(world, TaskState.SUCCEEDED, states=tuple(TaskState))
    assert isinstance(await try_submit(world, states=tuple(TaskState)), UniqueConflict)
    world.advance(1)
    await world.ledger.retain(KEEP_NOTHING, 100)
    assert not world.snapshot()["unique_keys"]
    assert (await submit(world, states=tuple(TaskState))).outcome is CREATED


async def test_a_throttle_outlives_its_task_for_its_time(world: World) -> None:
    first = await submit(world, "throttle", within=60)
    await world.finish(await world.claim_one())
    world.advance(30)
    await world.ledger.retain(KEEP_NOTHING, 100)
    assert await world.views.task("default", first.id) is None
    assert await submit(world, "throttle", within=60) == Submitted(first.id, TaskState.SUCCEEDED, False, EXISTING)
    world.advance(30)
    await world.ledger.retain(KEEP_NOTHING, 100)
    assert not world.snapshot()["unique_keys"]
    assert (await submit(world, "throttle", within=60)).outcome is CREATED


async def test_a_purge_removes_the_key(world: World) -> None:
    first = await in_state(world, TaskState.DEAD_LETTERED)
    assert await world.ledger.purge("default", [first], "bob") == [True]
    assert not world.snapshot()["unique_keys"]
