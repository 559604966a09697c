"""Schedules that stand beside each other: nothing that is done with one touches another, whoever owns it."""

from typing import Any

from conformance.making import ORGANIZATION, World, us
from conformance.test_schedules import MINUTE, fire, fires, firing, put, stands
from perdure.domain.retention import Retention
from perdure.domain.schedule import Cause, SkipReason, Stretch
from perdure.domain.states import TaskState
from perdure.store.schedules import Asked, Firing, Seen, Standing

OTHERS = ((ORGANIZATION, "beside"), ("other", "nightly"))


async def neighbours(world: World) -> None:
    """Another schedule here, and one of the same name elsewhere: each with a fire that is open, and one that waits."""
    now = await world.now_us()
    for organization, name in OTHERS:
        await world.store.schedules.put(
            organization, name, "{}", "eve", seen=None, standing=Standing(now, now + MINUTE, now + MINUTE)
        )
        await world.definitions.put(organization, "queue", name, "{}", "eve")
    world.advance(120)
    for organization, name in OTHERS:
        schedule = await world.store.schedules.get(organization, name)
        assert schedule is not None
        first = schedule.next_us or 0
        due = [first, first + MINUTE]
        works = {due[0]: world.task(organization=organization, queue="aside")}
        asked = Firing(
            organization,
            name,
            Seen(schedule.version, first),
            [Stretch(first - 9, first - 9, 1, SkipReason.MISSED)],
            due,
            works,
            {},
            "queue_one",
            first + 2 * MINUTE,
            # Beyond all that these tests do.
            first + us(10_000_000),
        )
        (fired,) = await world.store.schedules.fire([asked])
        assert fired.taken


def of_others(world: World) -> dict[str, list[dict[str, Any]]]:
    """All that is kept of the neighbours."""
    rows = world.snapshot()
    kept: dict[str, list[dict[str, Any]]] = {}
    for table, column in (("schedules", "name"), ("fires", "schedule"), ("skips", "schedule")):
        kept[table] = [row for row in rows[table] if (row["organization"], row[column]) in OTHERS]
        assert len(kept[table]) >= 2, table
    return kept


async def test_the_life_of_a_schedule_leaves_its_neighbours_as_they_are(world: World) -> None:
    await neighbours(world)
    before = of_others(world)
    await put(world)
    assert [each.name for each in await world.store.schedules.page(ORGANIZATION, "", 10)] == ["beside", "nightly"]
    world.advance(120)
    await fire(world, 2, overlap="queue_one")
    assert of_others(world) == before
    await world.finish(await world.claim_one())
    world.advance(1)
    kept = {"next_us": (await stands(world)).next_us, "look_us": None}
    await fire(world, 0, overlap="queue_one", waiting=world.task(), **kept)
    await world.store.schedules.pause(ORGANIZATION, "nightly", "ann")
    assert of_others(world) == before
    await fire(world, 0, resumed=True, **kept)
    schedule = await stands(world)
    await put(
        world,
        seen=Seen(schedule.version, schedule.next_us),
        standing=Standing(0, schedule.next_us, schedule.next_us),
        drop_waiting=True,
    )
    asked = Asked(ORGANIZATION, "nightly", Cause.BACKFILL, [(before["fires"][0]["instant_us"], world.task())])
    (made,) = await world.store.schedules.ask(asked)
    assert not made.replayed
    assert of_others(world) == before
    await world.store.schedules.delete(ORGANIZATION, "nightly", "bob")
    assert of_others(world) == before
    assert [each.first_us for each in await fires(world)] != []
    assert [each.name for each in await world.store.schedules.page("other", "", 10)] == ["nightly"]


async def test_what_is_open_next_door_overlaps_with_nothing_here(world: World) -> None:
    await neighbours(world)
    await put(world)
    world.advance(60)
    (task,) = (await fire(world, overlap="cancel_running")).made
    world.advance(60)
    await fire(world, overlap="cancel_running")
    assert await world.state(task) == TaskState.CANCELLED
    rows = world.snapshot()
    assert [row["open"] for row in of_others(world)["fires"] if row["outcome"] == "fired"] == [True, True]
    others = {row["task_id"] for row in of_others(world)["fires"]}
    assert {row["state"] for row in rows["live"] if row["organization"] == "other"} == {"queued"}
    assert task not in others


async def test_a_schedule_is_taken_only_as_it_was_seen(world: World) -> None:
    await neighbours(world)
    await put(world)
    world.advance(60)
    asked = await firing(world)
    next_us, version = asked.seen.next_us or 0, asked.seen.version
    for seen in (
        Seen(version, next_us + 1),
        Seen(version, None),
        Seen(version + 1, next_us),
        Seen(version, next_us, True),
    ):
        with world.unchanged():
            (fired,) = await world.store.schedules.fire([asked._replace(seen=seen)])
        assert not fired.taken
    assert [each.taken for each in await world.store.schedules.fire([asked])] == [True]


async def test_what_is_kept_goes_by_its_age_and_not_while_its_job_is_open_or_it_waits(world: World) -> None:
    await put(world)
    world.advance(120)
    asked = await firing(world, 2, overlap="queue_one")
    job = world.job({"a": []})
    await world.store.schedules.fire([asked._replace(works={asked.due[0]: job})])
    await world.ledger.retain(Retention(us(60)), 100)
    assert len(await fires(world)) == 2
    world.advance(61)
    await world.ledger.retain(Retention(us(60)), 100)
    assert [each.outcome for each in await fires(world)] == ["fired", "waiting"]
    await world.finish(await world.claim_one())
    await world.ledger.retain(Retention(us(60)), 100)
    assert [each.outcome for each in await fires(world)] == ["waiting"]
    skipped = [Stretch(5, 5, 1, SkipReason.MISSED)]
    after = await stands(world)
    await fire(world, 0, skipped=skipped, next_us=after.next_us, look_us=after.next_us)
    await world.ledger.retain(Retention(us(60)), 100)
    assert len(await fires(world)) == 2
    world.advance(60)
    await world.ledger.retain(Retention(us(60)), 100)
    assert len(await fires(world)) == 1
