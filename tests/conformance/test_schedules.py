"""Schedules: documents with how they stand, and instants that make tasks and jobs, each once."""

from typing import Any

import pytest

from conformance.making import ORGANIZATION, World, us
from perdure.domain.retention import Retention
from perdure.domain.schedule import Cause, FireOutcome, SkipReason, Stretch
from perdure.domain.states import Reason, TaskState
from perdure.errors import Conflict
from perdure.store.schedules import Asked, Fire, Fired, Firing, Schedule, Seen, Standing

NAME = "nightly"
MINUTE = us(60)


async def put(world: World, name: str = NAME, **given: Any) -> Schedule:
    """A schedule whose first instant is a minute from now, and its time to be looked at too."""
    now = await world.now_us()
    standing = Standing(now, now + MINUTE, now + MINUTE)
    usual: dict[str, Any] = {"document": '{"cron":"* * * * *"}', "actor": "bob", "seen": None, "standing": standing}
    return await world.store.schedules.put(ORGANIZATION, name, **{**usual, **given})


async def stands(world: World, name: str = NAME) -> Schedule:
    found = await world.store.schedules.get(ORGANIZATION, name)
    assert found is not None
    return found


async def firing(world: World, due: int | None = 1, **given: Any) -> Firing:
    """What is to come of the schedule: `due` instants from its next one on, a minute apart, with a task each."""
    schedule = await stands(world, given.pop("name", NAME))
    first = schedule.next_us or 0
    instants = [first + MINUTE * number for number in range(due or 0)]
    following = first + MINUTE * (due or 0)
    usual: dict[str, Any] = {
        "organization": ORGANIZATION,
        "name": schedule.name,
        "seen": Seen(schedule.version, schedule.next_us, schedule.paused),
        "skipped": (),
        "due": instants,
        "works": {instant: world.task() for instant in instants},
        "refusals": {},
        "overlap": "allow",
        "next_us": following,
        "look_us": following,
    }
    return Firing(**{**usual, **given})


async def fire(world: World, due: int = 1, **given: Any) -> Fired:
    (fired,) = await world.store.schedules.fire([await firing(world, due, **given)])
    assert fired.taken
    return fired


async def fires(world: World, name: str = NAME) -> list[Fire]:
    """What came of its instants, the first one first."""
    return (await world.store.schedules.fires(ORGANIZATION, name, None, 1000))[::-1]


async def outcomes(world: World) -> list[tuple[str, str | None, int]]:
    return [(each.outcome, each.reason, each.instants) for each in await fires(world)]


async def test_a_schedule_is_read_as_it_was_put_and_stands_as_was_said(world: World) -> None:
    assert await world.store.schedules.get(ORGANIZATION, NAME) is None
    now = await world.now_us()
    first = await put(world)
    assert (first.next_us, first.look_us, first.paused) == (now + MINUTE, now + MINUTE, False)
    assert (first.actor, first.document, first.last_us, first.waiting_us) == ("bob", '{"cron":"* * * * *"}', None, None)
    seen = Seen(first.version, first.next_us)
    second = await put(world, document='{"cron":"5 * * * *"}', actor="ann", seen=seen, standing=Standing(7, None, None))
    assert second == await stands(world)
    assert second.version > first.version
    assert (second.actor, second.anchor_us, second.next_us, second.look_us) == ("ann", 7, None, None)


async def test_a_put_over_what_was_not_seen_is_a_conflict_and_changes_nothing(world: World) -> None:
    first = await put(world)
    with world.unchanged():
        for seen in (None, Seen(first.version + 1, first.next_us), Seen(first.version, None), Seen(first.version, 5)):
            with pytest.raises(Conflict):
                await put(world, seen=seen)


async def test_lists_are_by_name_of_one_organization_and_of_one_set(world: World) -> None:
    for name, set in (("b", "mine"), ("a", "mine"), ("c", "yours")):
        await put(world, name, document=f'{{"set":"{set}"}}')
    page = world.store.schedules.page
    assert [each.name for each in await page(ORGANIZATION, "", 2)] == ["a", "b"]
    assert [each.name for each in await page(ORGANIZATION, "b", 2)] == ["c"]
    assert [each.name for each in await page(ORGANIZATION, "", 10, "mine")] == ["a", "b"]
    assert await page("other", "", 10) == []


async def test_what_is_due_is_told_with_the_time_of_the_next_one(world: World) -> None:
    await put(world)
    now = await world.now_us()
    assert await world.store.schedules.due(10) == ([], now + MINUTE, now)
    world.advance(60)
    await put(world, "later")
    due = await world.store.schedules.due(10)
    assert ([each.name for each in due.schedules], due.next_us) == ([NAME], now + 2 * MINUTE)


async def test_a_fire_makes_its_task_and_moves_the_schedule_on(world: World) -> None:
    await put(world)
    world.advance(60)
    asked = await firing(world)
    (fired,) = await world.store.schedules.fire([asked])
    (task,) = asked.works.values()
    assert fired == Fired(True, [task.id], 0)
    assert await world.state(task.id) == TaskState.QUEUED
    schedule = await stands(world)
    assert (schedule.next_us, schedule.look_us) == (asked.next_us, asked.look_us)
    assert (schedule.last_us, schedule.last_outcome, schedule.last_task_id) == (asked.due[0], "fired", task.id)
    (kept,) = await fires(world)
    assert kept == Fire(
        asked.due[0], asked.due[0], 1, Cause.TIME, FireOutcome.FIRED, None, None, task.id, None, await world.now_us()
    )


async def test_of_two_that_worked_out_the_same_one_fires(world: World) -> None:
    await put(world)
    world.advance(60)
    first, second = await firing(world), await firing(world)
    assert [each.taken for each in await world.store.schedules.fire([first, second])] == [True, False]
    with world.unchanged():
        assert await world.store.schedules.fire([second, first]) == [Fired(False), Fired(False)]
    assert len(await fires(world)) == 1


async def test_nothing_fires_before_its_time_or_over_another_document(world: World) -> None:
    first = await put(world)
    early = await firing(world)
    with world.unchanged():
        assert await world.store.schedules.fire([early]) == [Fired(False)]
    world.advance(60)
    await put(world, seen=Seen(first.version, first.next_us), standing=Standing(0, first.next_us, first.next_us))
    with world.unchanged():
        assert await world.store.schedules.fire([early]) == [Fired(False)]


async def test_an_instant_that_made_something_makes_nothing_more_whatever_the_schedule_says(world: World) -> None:
    now = await world.now_us()
    schedule = await put(world, standing=Standing(now, now + MINUTE, now))
    await fire(world)
    back = Standing(0, schedule.next_us, now)
    after = await stands(world)
    assert after.next_us == now + 2 * MINUTE
    await put(world, seen=Seen(after.version, after.next_us), standing=back)
    fired = await fire(world, 2)
    assert len(fired.made) == 1
    assert [each.first_us for each in await fires(world)] == [schedule.next_us, (schedule.next_us or 0) + MINUTE]


async def test_a_job_is_made_whole(world: World) -> None:
    await put(world)
    world.advance(60)
    asked = await firing(world)
    job = world.job({"a": [], "b": ["a"]})
    (fired,) = await world.store.schedules.fire([asked._replace(works={asked.due[0]: job})])
    assert fired.made == [job.id]
    assert (await stands(world)).last_job_id == job.id
    assert len(await world.views.job_tasks(ORGANIZATION, job.id)) == 2


async def test_many_instants_of_many_schedules_are_one_call(world: World) -> None:
    for name in ("a", "b"):
        await put(world, name)
    world.advance(180)
    asked = [await firing(world, 3, name=name) for name in ("a", "b")]
    fired = await world.store.schedules.fire(asked)
    assert [len(each.made) for each in fired] == [3, 3]
    assert [len(await fires(world, name)) for name in ("a", "b")] == [3, 3]


async def test_skipped_instants_are_kept_with_their_reason(world: World) -> None:
    await put(world)
    world.advance(600)
    first = (await stands(world)).next_us or 0
    stretch = Stretch(first, first + 2 * MINUTE, 3, SkipReason.MISSED)
    fired = await fire(world, 0, skipped=[stretch], next_us=first + 3 * MINUTE)
    assert fired == Fired(True, [], 3)
    schedule = await stands(world)
    assert (schedule.last_us, schedule.last_outcome, schedule.last_reason) == (stretch.last_us, "skipped", "missed")
    assert await outcomes(world) == [("skipped", "missed", 3)]


async def test_what_cannot_be_submitted_is_skipped_with_the_reason_and_the_rest_goes_on(world: World) -> None:
    await world.definitions.put(ORGANIZATION, "queue", "full", '{"depth":0}', "bob")
    await put(world)
    world.advance(180)
    asked = await firing(world, 3)
    works = {asked.due[0]: world.task(), asked.due[1]: world.task(queue="full")}
    asked = asked._replace(works=works, refusals={asked.due[2]: "the payload is wrong"})
    (fired,) = await world.store.schedules.fire([asked])
    assert (len(fired.made), fired.skipped) == (1, 2)
    kept = await fires(world)
    assert [(each.outcome, each.reason) for each in kept] == [
        ("fired", None),
        ("skipped", "refused"),
        ("skipped", "refused"),
    ]
    assert "full" in (kept[1].text or "")
    assert kept[2].text == "the payload is wrong"


async def test_what_overlaps_is_skipped_while_the_earlier_one_is_open(world: World) -> None:
    await put(world)
    world.advance(180)
    await fire(world, 3, overlap="skip")
    assert await outcomes(world) == [("fired", None, 1), ("skipped", "overlap", 2)]
    await world.finish(await world.claim_one())
    world.advance(60)
    await fire(world, overlap="skip")
    assert [each[0] for each in await outcomes(world)] == ["fired", "skipped", "fired"]


async def test_an_open_job_overlaps_too(world: World) -> None:
    await put(world)
    world.advance(60)
    asked = await firing(world)
    await world.store.schedules.fire([asked._replace(works={asked.due[0]: world.job({"a": []})})])
    world.advance(60)
    await fire(world, overlap="skip")
    await world.finish(await world.claim_one())
    world.advance(60)
    await fire(world, overlap="skip")
    assert [each[0] for each in await outcomes(world)] == ["fired", "skipped", "fired"]


async def test_one_waits_for_the_end_of_the_earlier_one_and_the_others_are_skipped(world: World) -> None:
    await put(world)
    world.advance(180)
    await fire(world, 3, overlap="queue_one")
    schedule = await stands(world)
    now = await world.now_us()
    assert schedule.waiting_us == (schedule.next_us or 0) - 2 * MINUTE
    assert (schedule.look_us or 0) <= now + us(1)
    assert await outcomes(world) == [("fired", None, 1), ("waiting", None, 1), ("skipped", "overlap", 1)]
    lease = await world.claim_one()
    world.advance(1)
    kept = {"overlap": "queue_one", "next_us": schedule.next_us, "look_us": schedule.next_us}
    assert await fire(world, 0, waiting=world.task(), **kept) == Fired(True, [], 0)
    await world.finish(lease)
    world.advance(1)
    task = world.task()
    assert await fire(world, 0, waiting=task, **kept) == Fired(True, [task.id], 0)
    after = await stands(world)
    assert (after.waiting_us, after.look_us, after.last_task_id) == (None, schedule.next_us, task.id)
    assert await outcomes(world) == [("fired", None, 1), ("fired", None, 1), ("skipped", "overlap", 1)]


async def test_a_waiting_one_that_cannot_be_submitted_is_skipped(world: World) -> None:
    await put(world)
    world.advance(120)
    await fire(world, 2, overlap="queue_one")
    await world.finish(await world.claim_one())
    world.advance(1)
    await fire(world, 0, overlap="queue_one", waiting_refusal="no such kind")
    assert await outcomes(world) == [("fired", None, 1), ("skipped", "refused", 1)]
    assert (await stands(world)).waiting_us is None


async def test_the_running_one_is_cancelled_for_the_next(world: World) -> None:
    await put(world)
    world.advance(60)
    (running,) = (await fire(world, overlap="cancel_running")).made
    await world.claim_one()
    world.advance(60)
    (waiting,) = (await fire(world, overlap="cancel_running")).made
    view = await world.look(running)
    assert view.state == TaskState.CANCELLING
    assert view.cancel is not None
    assert view.cancel.reason == Reason.SUPERSEDED
    world.advance(60)
    await fire(world, overlap="cancel_running")
    assert await world.state(waiting) == TaskState.CANCELLED
    assert await world.state(running) == TaskState.CANCELLING


async def test_a_running_job_is_stopped_for_the_next(world: World) -> None:
    await put(world)
    world.advance(60)
    asked = await firing(world)
    job = world.job({"a": []})
    await world.store.schedules.fire([asked._replace(works={asked.due[0]: job})])
    world.advance(60)
    await fire(world, overlap="cancel_running")
    assert await world.cascade() == 1
    view = await world.views.job(ORGANIZATION, job.id)
    assert view is not None
    assert view.state == "cancelled"


async def test_nothing_comes_of_a_paused_schedule_until_it_is_resumed(world: World) -> None:
    await put(world)
    assert await world.store.schedules.pause(ORGANIZATION, NAME, "ann")
    assert await world.store.schedules.pause(ORGANIZATION, NAME, "bob")
    assert not await world.store.schedules.pause(ORGANIZATION, "nobody", "bob")
    paused = await stands(world)
    assert (paused.paused, paused.paused_by, paused.look_us) == (True, "ann", None)
    world.advance(150)
    assert (await world.store.schedules.due(10)).schedules == []
    first = paused.next_us or 0
    put_again = await put(world, seen=Seen(paused.version, first), standing=Standing(0, first, first))
    assert (put_again.paused, put_again.look_us) == (True, None)
    skipped = [Stretch(first, first + MINUTE, 2, SkipReason.PAUSED)]
    await fire(world, 0, skipped=skipped, next_us=first + 2 * MINUTE, look_us=first + 2 * MINUTE, resumed=True)
    resumed = await stands(world)
    assert (resumed.paused, resumed.paused_by, resumed.look_us) == (False, None, first + 2 * MINUTE)
    assert await outcomes(world) == [("skipped", "paused", 2)]


async def test_what_was_asked_for_is_made_once_whatever_waits_or_runs(world: World) -> None:
    await put(world)
    asked = Asked(ORGANIZATION, NAME, Cause.BACKFILL, [(5, world.task()), (6, world.task())])
    made = await world.store.schedules.ask(asked)
    assert [(each.instant_us, each.replayed, each.error) for each in made] == [(5, False, None), (6, False, None)]
    with world.unchanged():
        again = await world.store.schedules.ask(asked._replace(works=[(5, world.task()), (6, world.task())]))
    assert [(each.task_id, each.replayed) for each in again] == [(each.task_id, True) for each in made]
    assert [(each.cause, each.outcome) for each in await fires(world)] == [("backfill", "fired")] * 2


async def test_what_was_asked_for_and_is_refused_leaves_nothing(world: World) -> None:
    await world.definitions.put(ORGANIZATION, "queue", "full", '{"depth":0}', "bob")
    await put(world)
    asked = Asked(ORGANIZATION, NAME, Cause.TRIGGER, [(5, world.task(queue="full"))])
    (made,) = await world.store.schedules.ask(asked)
    assert made.error is not None
    assert await fires(world) == []


async def test_a_change_keeps_what_had_come_and_lets_what_waits_go(world: World) -> None:
    await put(world)
    world.advance(120)
    await fire(world, 2, overlap="queue_one")
    schedule = await stands(world)
    first = schedule.next_us or 0
    await put(
        world,
        seen=Seen(schedule.version, first),
        standing=Standing(0, first + MINUTE, first + MINUTE),
        skipped=[Stretch(first, first, 1, SkipReason.CHANGED)],
        drop_waiting=True,
    )
    assert (await stands(world)).waiting_us is None
    assert await outcomes(world) == [("fired", None, 1), ("skipped", "changed", 1), ("skipped", "changed", 1)]


async def test_a_deleted_schedule_is_gone_and_what_came_of_it_stays(world: World) -> None:
    await put(world)
    world.advance(120)
    await fire(world, 2, overlap="queue_one")
    with world.unchanged(), pytest.raises(Conflict):
        await world.store.schedules.delete(ORGANIZATION, NAME, "bob", expected=7)
    version = (await stands(world)).version
    assert await world.store.schedules.delete(ORGANIZATION, NAME, "bob", expected=version)
    assert not await world.store.schedules.delete(ORGANIZATION, NAME, "bob")
    assert await world.store.schedules.get(ORGANIZATION, NAME) is None
    assert (await world.store.schedules.due(10)).schedules == []
    assert await outcomes(world) == [("fired", None, 1), ("skipped", "changed", 1)]
    assert (await put(world)).version > version


async def test_what_came_of_instants_goes_with_retention_unless_it_is_open(world: World) -> None:
    await put(world)
    world.advance(120)
    first = (await stands(world)).next_us or 0
    await fire(world, 2, skipped=[Stretch(first - 10, first - 10, 1, SkipReason.MISSED)])
    await world.finish(await world.claim_one())
    world.advance(61)
    await world.ledger.retain(Retention(us(60)), 100)
    assert [each[0] for each in await outcomes(world)] == ["fired"]
    await world.finish(await world.claim_one())
    await world.ledger.retain(Retention(us(60)), 100)
    assert await outcomes(world) == []


async def test_pages_of_what_came_go_on_where_the_last_one_ended(world: World) -> None:
    await put(world)
    world.advance(300)
    await fire(world, 4)
    first = (await fires(world))[0].first_us
    await fire(world, 0, skipped=[Stretch(first, first + MINUTE, 2, SkipReason.MISSED)])
    seen: list[tuple[int, str]] = []
    before = None
    while page := await world.store.schedules.fires(ORGANIZATION, NAME, before, 2):
        seen += [(each.first_us, each.outcome) for each in page]
        before = seen[-1]
    assert seen == [(first + MINUTE * n, "fired") for n in (3, 2, 1, 0)] + [(first, "skipped")]
