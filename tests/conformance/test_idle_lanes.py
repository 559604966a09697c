"""Lanes: those that have long been empty go, whoever remembers them; a task never stands in one that is not there."""

from conformance.making import HOUR, ORGANIZATION, World, us
from perdure.domain.retention import Retention
from perdure.store.relational.lanes import KEPT_US

DAY = KEPT_US // 1_000_000
KINDS = ("work", "b", "c", "d")


async def retain(world: World, limit: int = 100) -> None:
    await world.ledger.retain(Retention(us(HOUR)), limit)


def lanes(world: World) -> set[str]:
    """The kinds of the lanes that are there."""
    return {row["kind"] for row in world.snapshot()["lanes"]}


async def live_through(world: World, *kinds: str) -> None:
    """One task of each kind, from its submit until nothing of it is kept."""
    await world.worker(kinds=KINDS)
    for kind in kinds:
        await world.submit(kind=kind)
    await world.finish(*await world.claim(len(kinds)))
    world.advance(HOUR + 1)
    await retain(world)
    assert (await world.views.overview(ORGANIZATION)).attempts == 0


async def test_lanes_that_have_been_empty_for_a_day_go_with_their_counters_except_for_the_last(world: World) -> None:
    await live_through(world, *KINDS)
    world.advance(DAY - 1)
    await retain(world)
    assert lanes(world) == set(KINDS)
    world.advance(1)
    await retain(world)
    assert lanes(world) <= {"d"}
    there = {row["lane"] for row in world.snapshot()["lanes"]}
    assert {row["lane"] for row in world.snapshot()["counts"]} <= there | {0}


async def test_a_lane_that_was_removed_is_made_again_where_it_was_known(world: World) -> None:
    await live_through(world, *KINDS)
    world.advance(DAY)
    await retain(world)
    await world.worker(kinds=KINDS)
    again = [await world.submit(kind=kind) for kind in KINDS]
    leases = await world.claim(10)
    assert [(each.hold.task_id, each.kind) for each in leases] == list(zip(again, KINDS, strict=True))


async def test_a_lane_with_something_in_it_stays(world: World) -> None:
    waiting = await world.submit(kind="b", delay=3 * DAY)
    await live_through(world, "work", "c")
    for _ in range(2):
        world.advance(DAY)
        await retain(world)
    assert lanes(world) >= {"b"}
    world.advance(DAY)
    await world.worker(kinds=KINDS)
    assert [each.hold.task_id for each in await world.claim(10)] == [waiting]


async def test_a_lane_that_was_asked_for_within_a_day_stays(world: World) -> None:
    await live_through(world, *KINDS)
    world.advance(DAY / 2)
    await live_through(world, "b")
    world.advance(DAY / 2)
    await retain(world)
    assert lanes(world) - {"d"} == {"b"}


async def test_no_more_lanes_than_the_limit_go_at_once(world: World) -> None:
    await live_through(world, *KINDS)
    await retain(world)
    world.advance(DAY)
    await retain(world, 1)
    assert len(lanes(world)) == 3
