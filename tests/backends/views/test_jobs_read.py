"""What can be read of one job."""

import pytest

from conformance.making import FAILED, ORGANIZATION, World
from perdure.domain.states import JobState, TaskState
from perdure.errors import NotFound

DIAMOND = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}


async def test_a_job_shows_its_counts(world: World) -> None:
    family = await world.submit_job(DIAMOND, metadata='{"run":7}', name="nightly")
    await world.run(family, "a")
    job = await world.look_job(family)
    assert (job.name, job.state, job.total, job.open, job.metadata) == ("nightly", JobState.RUNNING, 4, 3, {"run": 7})
    assert {state: count for state, count in job.counts.items() if count} == {"succeeded": 1, "queued": 2, "pending": 1}
    await world.run(family, "b", "c")
    await world.run(family, "d", settlement=FAILED)
    job = await world.look_job(family)
    assert (job.state, job.open) == (JobState.FAILED, 0)
    assert {state: count for state, count in job.counts.items() if count} == {"succeeded": 3, "failed": 1}
    assert job.failing_since_us == job.finished_us == await world.now_us()


async def test_a_jobs_tasks_come_in_order_with_parents_and_times(world: World) -> None:
    family = await world.submit_job(DIAMOND)
    submitted_us = await world.now_us()
    world.advance(1)
    (lease,) = await world.claim(1)
    await world.start(lease)
    world.advance(1)
    await world.finish(lease)
    tasks = await world.views.job_tasks(ORGANIZATION, family.id)
    assert [task.name for task in tasks] == list(DIAMOND)
    assert [task.id for task in tasks] == [family[name] for name in DIAMOND]
    assert [task.parents for task in tasks] == [(), ("a",), ("a",), ("b", "c")]
    ended = await world.now_us()
    assert (tasks[0].queued_us, tasks[0].leased_us, tasks[0].started_us, tasks[0].finished_us) == (
        submitted_us,
        ended - 1_000_000,
        ended - 1_000_000,
        ended,
    )
    assert [task.state for task in tasks] == [TaskState.SUCCEEDED, *[TaskState.QUEUED] * 2, TaskState.PENDING]
    assert tasks[1].queued_us == ended
    assert (tasks[3].queued_us, tasks[3].leased_us) == (None, None)


async def test_many_parents_of_one_child_are_read_at_once(world: World) -> None:
    names = [f"p{number}" for number in range(2_000)]
    family = await world.submit_job({**{name: [] for name in names}, "child": names})
    tasks = await world.views.job_tasks(ORGANIZATION, family.id)
    assert tasks[-1].parents == tuple(names)


async def test_a_jobs_own_history(world: World) -> None:
    family = await world.submit_job(DIAMOND)
    world.advance(1)
    await world.run(family, "a", settlement=FAILED)
    await world.cascade()
    events = await world.views.job_events(ORGANIZATION, family.id)
    assert [event.type for event in events] == ["submitted", "started", "failing", "ended"]
    assert [event.id for event in events] == sorted(event.id for event in events)
    assert (events[0].actor, events[0].data, events[-1].data) == ("alice", {"tasks": 4}, {"state": "failed"})


async def test_a_job_that_runs_again_keeps_its_earlier_end(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]})
    await world.run(family, "a", settlement=FAILED)
    await world.cascade()
    before = await world.views.job_events(ORGANIZATION, family.id)
    world.advance(1)
    await world.redrive(family["a"])
    world.advance(1)
    await world.run(family, "a")
    await world.run(family, "b", settlement=FAILED)
    events = await world.views.job_events(ORGANIZATION, family.id)
    assert events[: len(before)] == before
    assert [event.type for event in events] == [
        "submitted",
        "started",
        "failing",
        "ended",
        "redriven",
        "failing",
        "ended",
    ]
    assert (events[4].actor, events[4].data["task"]) == ("bob", family["a"])
    world.advance(1)
    await world.redrive(family["b"])
    assert (await world.views.job_events(ORGANIZATION, family.id))[:-1] == events


async def test_a_cancelled_job_tells_who_asked(world: World) -> None:
    family = await world.submit_job(DIAMOND)
    await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", "wrong day")
    await world.cascade()
    job = await world.look_job(family)
    assert job.state == JobState.CANCELLED
    assert job.cancel is not None
    assert (job.cancel.actor, job.cancel.text) == ("bob", "wrong day")
    events = await world.views.job_events(ORGANIZATION, family.id)
    assert [event.type for event in events].count("cancel_requested") == 1
    requested = next(event for event in events if event.type == "cancel_requested")
    assert (requested.actor, requested.data["text"]) == ("bob", "wrong day")


async def test_nothing_of_another_organizations_job_is_seen(world: World) -> None:
    family = await world.submit_job(DIAMOND)
    assert await world.views.job("other", family.id) is None
    assert await world.views.job(ORGANIZATION, world.ids.new()) is None
    for view in (world.views.job_tasks, world.views.job_events):
        with pytest.raises(NotFound) as caught:
            await view("other", family.id)
        assert (caught.value.what, caught.value.id) == ("job", family.id)
