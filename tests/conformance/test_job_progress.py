"""How far a job is: its tasks by state, and the items that its handlers told of."""

from conformance.families import held
from conformance.making import FAILED, ORGANIZATION, World
from perdure.domain.attempt import Progress
from perdure.domain.states import JobState, TaskState
from perdure.store.views import JobProgress

S = TaskState


async def progress(world: World, job: str) -> JobProgress:
    """The progress of a job."""
    shown = await world.views.job_progress(ORGANIZATION, job)
    assert shown is not None
    return shown


def counts(shown: JobProgress) -> dict[str, int]:
    """Without the states that no task is in."""
    return {state: number for state, number in shown.counts.items() if number}


async def test_counts_and_items_add_up_over_the_tasks(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": ["a"], "d": []})
    shown = await progress(world, family.id)
    assert (shown.id, shown.state, shown.total, shown.ended) == (family.id, JobState.PENDING, 4, 0)
    assert (shown.items_done, shown.items_total) == (None, None)
    (a, b, d) = await held(world, family, "a", "b", "d")
    await world.report(a, progress=Progress(3, 10))
    await world.report(b, progress=Progress(5))
    await world.finish(a)
    await world.finish(d, settlement=FAILED)
    shown = await progress(world, family.id)
    assert (shown.state, shown.total, shown.ended) == (JobState.RUNNING, 4, 2)
    assert counts(shown) == {"succeeded": 1, "failed": 1, "running": 1, "queued": 1}
    assert (shown.items_done, shown.items_total) == (8, 10)
    assert shown.failing_since_us == await world.now_us()
    await world.finish(b)
    await world.run(family, "c")
    shown = await progress(world, family.id)
    assert (shown.state, shown.ended, shown.finished_us) == (JobState.FAILED, 4, await world.now_us())


async def test_a_job_that_is_absent_or_anothers_has_no_progress(world: World) -> None:
    family = await world.submit_job({"a": []})
    assert await world.views.job_progress(ORGANIZATION, world.ids.new()) is None
    assert await world.views.job_progress("other", family.id) is None
