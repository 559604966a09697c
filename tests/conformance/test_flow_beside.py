"""Limits of queues and organizations beside others: what is held and started elsewhere takes no room here."""

import pytest

from conformance.making import HOUR, KIND, ORGANIZATION, QUEUE, World, us
from conformance.test_queue_limits import BOTH, say, submit_many
from perdure.domain.why import ObstacleSort
from perdure.store.definitions import DefinitionType

ELSEWHERE = "elsewhere"


async def held_beside(world: World) -> None:
    """Tasks of other queues, kinds and organizations are held, in lanes of every sort."""
    await world.worker(kinds=(KIND, "another"), queues=(QUEUE, "side"))
    for given in ({"queue": "side"}, {"organization": ELSEWHERE}, {"organization": ELSEWHERE, "queue": "side"}):
        await submit_many(world, 2, lease=HOUR, priority=9, **given)
    await world.claim(6)


@BOTH
async def test_what_others_hold_takes_no_room_here(world: World, type: DefinitionType, name: str) -> None:
    await held_beside(world)
    room = 1 if type == "queue" else 3
    await say(world, type, name, concurrency=room)
    first, second = await world.submit(), await world.submit()
    assert await world.views.why(ORGANIZATION, first) == []
    assert [each.hold.task_id for each in await world.claim(5)] == [first]
    (told,) = await world.views.why(ORGANIZATION, second)
    assert (told.sort, told.text) == (ObstacleSort.LIMIT, f"{room} are at work, the limit of {type} {name!r}")


async def test_a_limit_of_starts_alone_is_named_with_the_next_of_its_own(world: World) -> None:
    await world.worker(queues=(QUEUE, "side"))
    await say(world, "queue", "side", rate=1, per=20)
    await say(world, "queue", QUEUE, organization=ELSEWHERE, rate=1, per=20)
    await say(world, "queue", QUEUE, rate=1, per=60)
    await submit_many(world, 1, queue="side")
    await submit_many(world, 1, organization=ELSEWHERE)
    await submit_many(world, 1)
    assert len(await world.claim(3)) == 3
    waiting = await world.submit()
    (told,) = await world.views.why(ORGANIZATION, waiting)
    assert (told.sort, told.until_us) == (ObstacleSort.LIMIT, await world.now_us() + us(60))
    world.advance(61)
    assert len(await world.claim(1)) == 1
    another = await world.submit()
    (told,) = await world.views.why(ORGANIZATION, another)
    assert told.until_us == await world.now_us() + us(60), "not when an earlier one was"


@pytest.mark.parametrize("document", [{"concurrency": 1}, {"rate": 1, "per": 60}], ids=["concurrency", "rate"])
async def test_a_limit_is_named_whatever_else_its_document_does_not_say(world: World, document: dict[str, int]) -> None:
    await say(world, "queue", QUEUE, **document)
    await world.submit()
    await world.claim_one()
    task_id = await world.submit()
    assert [each.sort for each in await world.views.why(ORGANIZATION, task_id)] == [ObstacleSort.LIMIT]


async def test_a_limit_that_was_lowered_tells_of_a_start_that_still_counts(world: World) -> None:
    await say(world, "queue", QUEUE, rate=2, per=60)
    await submit_many(world, 3)
    await world.claim_one()
    world.advance(30)
    await world.worker()
    await world.claim_one()
    world.advance(31)
    await say(world, "queue", QUEUE, rate=1, per=60)
    waiting = await world.submit(priority=9)
    (told,) = await world.views.why(ORGANIZATION, waiting)
    assert (told.sort, told.until_us) == (ObstacleSort.LIMIT, await world.now_us() + us(29))
