"""Schedules whose instants are the same to the microsecond: what becomes of one is nothing to its twins."""

from typing import Any

from conformance.making import ORGANIZATION, World, us
from conformance.test_neighbours import put as put_document
from conformance.test_schedules import MINUTE, NAME, fires, firing, put, stands
from perdure.domain.limits import FIRES_OPEN_MAX
from perdure.domain.retention import Retention
from perdure.domain.schedule import Cause, SkipReason, Stretch
from perdure.domain.states import TaskState
from perdure.store.schedules import Asked, Fire, Fired, Firing, Schedule, Seen, Standing

TWINS = (("aaa", NAME), (ORGANIZATION, "aaa"), (ORGANIZATION, "zzz"), ("zzz", NAME))
"""Those that come before and after it, by organization and by name."""


async def twins(world: World, **given: Any) -> None:
    """The schedule and its twins, put at one instant; two of their instants have come."""
    now = await world.now_us()
    standing = Standing(now, now + MINUTE, now + MINUTE)
    for organization, name in TWINS:
        await world.store.schedules.put(organization, name, '{"cron":"?"}', "eve", seen=None, standing=standing)
    await put(world, **given)
    world.advance(120)


async def of_twin(world: World, twin: tuple[str, str]) -> Schedule:
    found = await world.store.schedules.get(*twin)
    assert found is not None
    return found


async def fire_as(world: World, twin: tuple[str, str], due: int, **given: Any) -> Fired:
    """Let instants of a twin make tasks of its own."""
    organization, name = twin
    schedule = await of_twin(world, twin)
    first = schedule.next_us or 0
    instants = [first + MINUTE * number for number in range(due)]
    works = {instant: world.task(organization=organization, queue="aside") for instant in instants}
    usual: dict[str, Any] = {
        "seen": Seen(schedule.version, schedule.next_us, schedule.paused),
        "skipped": (),
        "due": instants,
        "works": works,
        "refusals": {},
        "overlap": "allow",
        "next_us": first + MINUTE * due,
        "look_us": first + MINUTE * due,
    }
    (fired,) = await world.store.schedules.fire([Firing(organization, name, **{**usual, **given})])
    assert fired.taken
    return fired


async def all_fire(world: World, due: int, **given: Any) -> None:
    for twin in (*TWINS, (ORGANIZATION, NAME)):
        await fire_as(world, twin, due, **given)


def of_twins(world: World) -> dict[str, list[dict[str, Any]]]:
    """All that is kept of the twins."""
    rows, kept = world.snapshot(), dict[str, list[dict[str, Any]]]()
    for table, column in (("schedules", "name"), ("fires", "schedule"), ("skips", "schedule")):
        kept[table] = [row for row in rows[table] if (row["organization"], row[column]) in TWINS]
    return kept


async def finish_mine(world: World) -> None:
    await world.finish(*[lease for lease in await world.claim(10) if lease.hold.organization == ORGANIZATION])


async def test_the_instant_that_waited_begins_alone(world: World) -> None:
    await twins(world)
    for twin in TWINS:
        await fire_as(world, twin, 2, overlap="queue_one")
    asked = await firing(world, 2, overlap="queue_one")
    await world.store.schedules.fire([asked])
    before = of_twins(world)
    await finish_mine(world)
    world.advance(1)
    task = world.task()
    kept = {"overlap": "queue_one", "next_us": asked.next_us, "look_us": asked.look_us}
    assert (await world.store.schedules.fire([await firing(world, 0, waiting=task, **kept)]))[0].made == [task.id]
    assert of_twins(world) == before
    assert [each.outcome for each in await fires(world)] == ["fired", "fired"]


async def test_what_waits_at_a_twin_does_not_wait_here(world: World) -> None:
    await twins(world)
    for twin in TWINS:
        await fire_as(world, twin, 2, overlap="queue_one", next_us=(await of_twin(world, twin)).next_us, look_us=1)
    asked = await firing(world, 1, overlap="queue_one", next_us=5, look_us=None)
    (fired,) = await world.store.schedules.fire([asked])
    assert fired.made == [asked.works[asked.due[0]].id]
    assert (await stands(world)).waiting_us is None


async def test_a_waiting_instant_is_dropped_alone(world: World) -> None:
    await twins(world)
    await all_fire(world, 2, overlap="queue_one")
    before = of_twins(world)
    assert before["schedules"][0]["waiting_us"] is not None
    schedule = await stands(world)
    seen, standing = Seen(schedule.version, schedule.next_us), Standing(0, schedule.next_us, schedule.next_us)
    await put(world, document="{}", seen=seen, standing=standing, drop_waiting=True)
    assert (await stands(world)).waiting_us is None
    assert of_twins(world) == before


async def test_an_instant_that_is_refused_is_forgotten_alone(world: World) -> None:
    await put_document(world, "queue", "full", depth=0)
    await twins(world)
    for twin in TWINS:
        await fire_as(world, twin, 2)
    before = of_twins(world)
    asked = await firing(world, 2)
    works = {instant: world.task(queue="full") for instant in asked.due}
    (fired,) = await world.store.schedules.fire([asked._replace(works=works)])
    assert (fired.made, fired.skipped) == ([], 2)
    assert of_twins(world) == before


async def test_what_was_asked_of_a_twin_is_no_answer_here(world: World) -> None:
    await twins(world)
    tasks = {}
    for place in (*TWINS[:2], (ORGANIZATION, NAME), *TWINS[2:]):
        tasks[place] = world.task(organization=place[0])
        (made,) = await world.store.schedules.ask(Asked(*place, Cause.TRIGGER, [(5, tasks[place])]))
        assert not made.replayed
    with world.unchanged():
        (again,) = await world.store.schedules.ask(Asked(ORGANIZATION, NAME, Cause.TRIGGER, [(5, world.task())]))
    assert (again.task_id, again.replayed) == (tasks[ORGANIZATION, NAME].id, True)


async def test_each_instant_that_was_asked_for_is_answered_with_what_it_made(world: World) -> None:
    await put(world)
    works = [(instant, world.task()) for instant in (5, 6, 7)]
    asked = Asked(ORGANIZATION, NAME, Cause.BACKFILL, works)
    await world.store.schedules.ask(asked)
    (again,) = await world.store.schedules.ask(asked._replace(works=[(6, world.task())]))
    assert (again.instant_us, again.task_id) == (6, works[1][1].id)


async def test_only_its_own_instants_are_listed(world: World) -> None:
    await twins(world)
    skipped = [Stretch(3, 4, 2, SkipReason.MISSED)]
    await all_fire(world, 2, skipped=skipped)
    listed = await fires(world)
    assert [(each.outcome, each.first_us) for each in listed][:1] == [("skipped", 3)]
    assert len(listed) == 3
    mine = {row["id"] for row in world.snapshot()["tasks"] if row["organization"] == ORGANIZATION}
    assert {each.task_id for each in listed[1:]} <= mine
    assert len(await world.store.schedules.fires("zzz", NAME, None, 10)) == 3


async def pages(world: World, size: int) -> list[Fire]:
    """All that came of its instants, page by page, the latest first."""
    seen: list[Fire] = []
    while page := await world.store.schedules.fires(
        ORGANIZATION, NAME, (seen[-1].first_us, seen[-1].outcome) if seen else None, size
    ):
        seen += page
        assert len(seen) < 100
    return seen


async def test_pages_of_any_size_have_each_line_once_whatever_has_come_at_one_instant(world: World) -> None:
    await put(world)
    world.advance(300)
    await world.store.schedules.fire([await firing(world, 4, overlap="queue_one")])
    first = (await fires(world))[0].first_us
    stretches = [Stretch(first + MINUTE * n, first + MINUTE * n, 1, SkipReason.MISSED) for n in (0, 1, 7)]
    asked = await firing(world, 0, skipped=stretches)
    await world.store.schedules.fire([asked._replace(next_us=asked.next_us)])
    lines = await pages(world, 100)
    assert [each.outcome for each in lines] == ["skipped", "skipped", "skipped", "waiting", "fired", "skipped"]
    for size in (1, 2, 3, 4):
        assert await pages(world, size) == lines


async def test_the_documents_of_twins_and_of_other_things_are_not_due_here(world: World) -> None:
    for type, name in (("queue", NAME), ("kind", NAME), ("queue", "aaa")):
        await world.definitions.put(ORGANIZATION, type, name, "{}", "zoe")  # type: ignore[arg-type]
    await twins(world)
    due = (await world.store.schedules.due(100)).schedules
    assert sorted((each.organization, each.name) for each in due) == sorted([*TWINS, (ORGANIZATION, NAME)])
    assert {(each.actor, each.document) for each in due if each[:2] in TWINS} == {("eve", '{"cron":"?"}')}
    assert [each.actor for each in due if each[:2] == (ORGANIZATION, NAME)] == ["bob"]
    assert (await stands(world)).actor == "bob"


async def test_a_paused_one_that_is_moved_without_being_resumed_stays_paused(world: World) -> None:
    await put(world)
    await world.store.schedules.pause(ORGANIZATION, NAME, "ann")
    paused = await stands(world)
    assert paused.paused_us == await world.now_us()
    world.advance(60)
    first = paused.next_us or 0
    skipped = [Stretch(first, first, 1, SkipReason.PAUSED)]
    (fired,) = await world.store.schedules.fire([await firing(world, 0, skipped=skipped, next_us=first + MINUTE)])
    assert fired == Fired(True, [], 1)
    after = await stands(world)
    assert (after.paused, after.paused_by, after.paused_us) == (True, "ann", paused.paused_us)
    assert (after.next_us, after.look_us) == (first + MINUTE, None)


# What is open


async def test_a_task_of_the_same_id_elsewhere_keeps_nothing_open_here(world: World) -> None:
    await put(world)
    world.advance(60)
    asked = await firing(world)
    await world.store.schedules.fire([asked])
    (work,) = asked.works.values()
    await world.submit_all([world.task(id=work.id, organization="zzz", queue="aside")])
    await world.finish(await world.claim_one())
    world.advance(60)
    again = await firing(world, overlap="skip")
    assert len((await world.store.schedules.fire([again]))[0].made) == 1


async def test_another_open_job_keeps_nothing_open_here(world: World) -> None:
    await put(world)
    world.advance(60)
    asked, job = await firing(world), world.job({"a": []})
    await world.store.schedules.fire([asked._replace(works={asked.due[0]: job})])
    await world.finish(await world.claim_one())
    await world.submit_job({"a": []}, tasks={"a": {"queue": "aside"}})
    same = world.job({"a": []}, tasks={"a": {"queue": "aside"}}, id=job.id, organization="zzz")
    await world.ledger.submit_jobs([same])
    world.advance(60)
    again = await firing(world, overlap="skip")
    assert len((await world.store.schedules.fire([again]))[0].made) == 1


async def test_many_open_ones_next_door_do_not_keep_its_own_from_being_closed(world: World) -> None:
    await twins(world)
    for twin in TWINS[:2]:
        await fire_as(world, twin, FIRES_OPEN_MAX, next_us=5, look_us=None)
    mine = await firing(world, 1)
    late = mine.due[0] + 2 * FIRES_OPEN_MAX * MINUTE
    asked = mine._replace(due=[late], works={late: world.task()}, next_us=mine.due[0], look_us=mine.due[0])
    await world.store.schedules.fire([asked])
    await finish_mine(world)
    (fired,) = await world.store.schedules.fire([await firing(world, overlap="skip")])
    assert len(fired.made) == 1
    assert await world.state(fired.made[0]) is TaskState.QUEUED


async def test_what_came_of_instants_goes_though_twins_of_what_they_made_are_open(world: World) -> None:
    await put(world)
    world.advance(120)
    asked, job = await firing(world, 2), world.job({"a": []})
    (first, second), task = asked.due, world.task()
    await world.store.schedules.fire([asked._replace(works={first: task, second: job})])
    await world.finish(*await world.claim(2))
    aside = {"queue": "aside"}
    await world.submit_all([world.task(id=task.id, organization="zzz", **aside)])
    for id, organization in ((job.id, "zzz"), (world.ids.new(), ORGANIZATION)):
        other = world.job({"a": []}, tasks={"a": aside}, id=id, organization=organization)
        await world.ledger.submit_jobs([other])
    world.advance(61)
    # The tasks and jobs themselves are kept for longer.
    await world.ledger.retain(Retention(us(60), {TaskState.SUCCEEDED: us(10**6)}), 100)
    assert await fires(world) == []
    assert await world.state(task.id) is TaskState.SUCCEEDED


async def test_many_that_have_ended_do_not_keep_a_later_one_from_being_closed(world: World) -> None:
    await put(world)
    world.advance(60 * (FIRES_OPEN_MAX + 10))
    await world.worker()
    await world.store.schedules.fire([await firing(world, FIRES_OPEN_MAX + 1)])
    await world.finish(*[lease for _ in range(3) for lease in await world.claim(500)])
    made = []
    for _ in range(3):
        asked = await firing(world, overlap="skip")
        made.append(len((await world.store.schedules.fire([asked]))[0].made))
    # They are closed a thousand at a time.
    assert made == [0, 1, 0]
