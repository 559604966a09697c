"""Unique tasks whose keys and ids are the same in two organizations, and what keys remember of those that have gone."""

import pytest

from conformance.making import DONE, FAILED, ORGANIZATION, World, us
from conformance.uniques import CREATED, submit, try_submit
from perdure.domain.retention import Retention
from perdure.domain.states import TaskState
from perdure.errors import UniqueConflict
from perdure.store.ledger import Submitted

OTHERS = ("aaa", "zzz")
"""Before and after the usual one."""
FOR_EVER = 10**17
LONG = 10**7


async def finish_mine(world: World, settlement: object = DONE) -> None:
    leases = await world.claim(10)
    mine = [lease for lease in leases if lease.hold.organization == ORGANIZATION]
    await world.finish(*mine, settlement=settlement)  # type: ignore[arg-type]


@pytest.mark.parametrize("organization", OTHERS)
async def test_a_holder_of_the_same_id_elsewhere_keeps_no_key_here(world: World, organization: str) -> None:
    first = await submit(world)
    await submit(world, id=first.id, organization=organization)
    await finish_mine(world)
    second = await submit(world)
    assert second.outcome is CREATED
    answer = await try_submit(world, organization=organization)
    assert isinstance(answer, UniqueConflict)
    assert answer.task_id == first.id, "the key there is still that task's"
    answer = await try_submit(world)
    assert isinstance(answer, UniqueConflict)
    assert answer.task_id == second.id


@pytest.mark.parametrize("organization", OTHERS)
async def test_a_holder_that_ended_elsewhere_frees_no_key_here(world: World, organization: str) -> None:
    first = await submit(world, id="one", organization=organization)
    await world.finish(*await world.claim(1))
    second = await submit(world, id="one", delay=60)
    assert first.id == second.id
    answer = await try_submit(world)
    assert isinstance(answer, UniqueConflict)
    assert answer.state == TaskState.PENDING


@pytest.mark.parametrize("organization", OTHERS)
async def test_a_task_that_comes_is_no_repeat_of_one_of_its_id_elsewhere(world: World, organization: str) -> None:
    holder = await submit(world)
    await submit(world, id="two", organization=organization)
    answer = await try_submit(world, id="two")
    assert isinstance(answer, UniqueConflict)
    assert answer.task_id == holder.id


async def test_a_repeat_tells_how_its_own_task_has_ended(world: World) -> None:
    for settlement in (FAILED, DONE, FAILED):
        lease = await world.lease()
        await world.finish(lease, settlement=settlement)
        if settlement is DONE:
            await submit(world, id="mine")
            await finish_mine(world)
    other = await submit(world)
    assert other.outcome is CREATED
    again = await try_submit(world, id="mine")
    assert isinstance(again, Submitted)
    assert (again.state, again.replayed) == (TaskState.SUCCEEDED, True)


@pytest.mark.parametrize("organization", OTHERS)
async def test_a_task_that_is_sent_or_run_again_is_told_how_it_stands_and_not_its_twin(
    world: World, organization: str
) -> None:
    await world.cancel(await world.submit())
    for each in sorted((organization, ORGANIZATION)):
        await world.submit_all([world.task(id="one", organization=each)])
    await world.submit_all([world.task(id="other", organization=organization, delay=60)])
    await finish_mine(world, FAILED)
    with world.unchanged():
        (again,) = await world.submit_all([world.task(id="one")])
    assert isinstance(again, Submitted)
    assert (again.state, again.replayed) == (TaskState.DEAD_LETTERED, True)
    assert await world.redrive("one") is TaskState.QUEUED


async def test_a_key_remembers_how_the_task_that_has_gone_had_ended_and_others_remember_nothing(world: World) -> None:
    for organization in (*OTHERS, ORGANIZATION):
        await world.cancel(await world.submit(organization=organization), organization=organization)
        await world.submit(id="a", organization=f"a {organization}")
    await world.finish(*await world.claim(10), settlement=FAILED)
    for id, key, settlement in (("a", "work a", DONE), ("b", "work b", FAILED)):
        for organization in (*OTHERS, ORGANIZATION):
            await submit(world, "throttle", key=key, within=LONG, id=id, organization=organization)
        await finish_mine(world, settlement)
    await submit(world, "throttle", key="work c", within=LONG, delay=LONG)
    await world.submit()
    await finish_mine(world)
    world.advance(1)
    for state, left in ((TaskState.SUCCEEDED, {"work a": "succeeded"}), (TaskState.DEAD_LETTERED, {})):
        await world.ledger.retain(Retention(FOR_EVER, {state: us(0)}), 100)
        keys = {(row["organization"], row["key"]): row["left_state"] for row in world.snapshot()["unique_keys"]}
        assert len(keys) == 7
        expected = {"work a": "succeeded", **({} if left else {"work b": "dead_lettered"})}
        assert {key: state for key, state in keys.items() if state is not None} == {
            (ORGANIZATION, key): state for key, state in expected.items()
        }
    answer = await try_submit(world, "throttle", key="work b", within=LONG)
    assert isinstance(answer, Submitted)
    assert (answer.id, answer.state) == ("b", TaskState.DEAD_LETTERED)
