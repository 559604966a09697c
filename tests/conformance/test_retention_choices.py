"""How long what has ended is kept, by end state and by kind."""

import json
from typing import Any

import pytest

from conformance.making import (
    DONE,
    FAILED,
    KIND,
    ORGANIZATION,
    PARTLY_DONE,
    World,
    part,
    us,
)
from perdure.domain.retention import Retention
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState

KEEP = 1000
KEPT = Retention(us(KEEP))
GIVEN_UP = Settlement.gave_up("why")


async def retain(world: World, kept: Retention = KEPT, limit: int = 100) -> int:
    moved = 0
    for _ in range(1000):
        swept = await world.ledger.retain(kept, limit)
        moved += swept.moved
        if not swept.more:
            return moved
    raise AssertionError("retention does not come to an end")


async def kind_says(world: World, **document: Any) -> None:
    await world.definitions.put(ORGANIZATION, "kind", KIND, json.dumps({"kind": KIND, **document}), "bob")


async def ended(world: World, settlement: Settlement = DONE, **given: Any) -> str:
    lease = await world.lease(**given)
    await world.finish(lease, settlement=settlement)
    return lease.hold.task_id


async def kept(world: World, task_id: str) -> bool:
    return await world.views.task(ORGANIZATION, task_id) is not None


async def test_each_end_state_is_kept_for_its_own_time(world: World) -> None:
    choice = Retention(us(KEEP), {TaskState.SUCCEEDED: us(10), TaskState.DEAD_LETTERED: us(5 * KEEP)})
    done, dead, cancelled = await ended(world), await ended(world, FAILED), await ended(world, GIVEN_UP)
    world.advance(11)
    assert await retain(world, choice) == 1
    assert not await kept(world, done)
    world.advance(KEEP)
    await retain(world, choice)
    assert not await kept(world, cancelled)
    assert await kept(world, dead)
    world.advance(4 * KEEP)
    await retain(world, choice)
    assert not await kept(world, dead)


@pytest.mark.parametrize("own", [10, 3 * KEEP])
async def test_a_kind_says_how_long_its_tasks_are_kept(world: World, own: int) -> None:
    await kind_says(world, retention=own)
    await world.worker("w", kinds=(KIND, "other"))
    mine, others = await ended(world), await ended(world, kind="other")
    world.advance(min(own, KEEP) + 1)
    await retain(world)
    assert [await kept(world, mine), await kept(world, others)] == [own > KEEP, own < KEEP]
    world.advance(abs(own - KEEP))
    await retain(world)
    assert [await kept(world, mine), await kept(world, others)] == [False, False]


async def test_a_kind_may_say_it_of_single_ends(world: World) -> None:
    await kind_says(world, retention={"succeeded": 10})
    done, partly, dead = await ended(world), await ended(world, PARTLY_DONE), await ended(world, FAILED)
    choice = Retention(us(KEEP), {TaskState.DEAD_LETTERED: us(20), TaskState.SUCCEEDED: us(5 * KEEP)})
    world.advance(11)
    await retain(world, choice)
    assert [await kept(world, each) for each in (done, partly, dead)] == [False, True, True]
    world.advance(10)
    await retain(world, choice)
    assert [await kept(world, each) for each in (done, partly, dead)] == [False, True, False]


async def test_another_organizations_kind_says_nothing_here(world: World) -> None:
    await world.definitions.put("other", "kind", KIND, json.dumps({"kind": KIND, "retention": 1}), "eve")
    mine = await ended(world)
    world.advance(10)
    assert await retain(world) == 0
    assert await kept(world, mine)


async def test_a_change_of_a_kind_holds_for_what_has_ended_already(world: World) -> None:
    mine = await ended(world)
    world.advance(20)
    assert await retain(world) == 0
    await kind_says(world, retention=10)
    assert await retain(world) == 1
    assert not await kept(world, mine)


async def test_a_job_stays_as_long_as_any_end_that_its_tasks_may_have_had(world: World) -> None:
    await kind_says(world, retention=1, result_retention=1)
    choice = Retention(us(10), {TaskState.DEAD_LETTERED: us(KEEP)})
    good = await world.submit_job({"a": []})
    await world.run(good, "a")
    bad = await world.submit_job({"a": [], "b": []})
    await world.run(bad, "a", settlement=FAILED)
    await world.run(bad, "b")
    world.advance(11)
    await retain(world, choice)
    assert await world.views.job(ORGANIZATION, good.id) is None
    for name in ("a", "b"):
        assert await kept(world, bad[name])
    view = await world.views.task(ORGANIZATION, bad["b"])
    assert view is not None
    assert view.result == DONE.result
    world.advance(KEEP)
    await retain(world, choice)
    assert await world.views.job(ORGANIZATION, bad.id) is None


async def with_parts(world: World, settlement: Settlement = DONE) -> str:
    lease = await world.lease()
    await world.report(lease, part=part(1, final=True))
    await world.finish(lease, settlement=settlement)
    return lease.hold.task_id


async def result_of(world: World, task_id: str) -> Any:
    view = await world.views.task(ORGANIZATION, task_id)
    assert view is not None
    assert view.state in (TaskState.SUCCEEDED, TaskState.PARTIALLY_SUCCEEDED)
    return view.result


@pytest.mark.parametrize("settlement", [DONE, PARTLY_DONE], ids=["whole", "partly"])
async def test_a_result_goes_before_its_task_where_its_kind_says_so(world: World, settlement: Settlement) -> None:
    await kind_says(world, result_retention=10)
    early = await with_parts(world, settlement)
    world.advance(9)
    assert await retain(world) == 0
    late = await with_parts(world, settlement)
    world.advance(2)
    assert await retain(world) == 1
    assert await result_of(world, early) is None
    assert await world.views.parts(ORGANIZATION, early) == []
    assert len(await world.views.attempts(ORGANIZATION, early)) == 1
    assert await result_of(world, late) == settlement.result
    assert len(await world.views.parts(ORGANIZATION, late)) == 1
    world.advance(10)
    assert await retain(world) == 1
    assert await result_of(world, late) is None
    assert await retain(world) == 0
    world.advance(KEEP)
    assert await retain(world) == 2


async def test_results_of_one_instant_go_in_bounded_steps(world: World) -> None:
    await kind_says(world, result_retention=10)
    await world.submit_all([world.task() for _ in range(25)])
    leases = await world.claim(25)
    await world.finish(*leases)
    world.advance(11)
    sizes = []
    while True:
        swept = await world.ledger.retain(KEPT, 10)
        sizes.append(swept.moved)
        if not swept.more:
            break
    assert sizes == [10, 10, 5]
    assert [await result_of(world, each.hold.task_id) for each in leases] == [None] * 25


async def test_results_that_are_kept_for_longer_than_their_tasks_go_with_them(world: World) -> None:
    await kind_says(world, retention=5, result_retention=10)
    task_id = await ended(world)
    world.advance(6)
    assert await retain(world) == 1
    assert not await kept(world, task_id)
