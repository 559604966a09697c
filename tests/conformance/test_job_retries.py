"""Retrying jobs: only what failed runs again, with what was cancelled for it, under the same ids."""

import pytest

from conformance.families import ends_of, held
from conformance.making import DONE, FAILED, FAILED_UNKEPT, ORGANIZATION, World
from perdure.domain.states import JobState, TaskState
from perdure.errors import Conflict, NotFound
from perdure.store.job_ledger import JobRetried

S = TaskState


async def retry(world: World, job: str, organization: str = ORGANIZATION) -> JobRetried:
    """Retry a job as bob."""
    return await world.ledger.retry_job(organization, job, "bob")


async def test_only_what_failed_runs_again_with_what_depends_on_it(world: World) -> None:
    family = await world.submit_job(
        {"good": [], "bad": [], "worse": [], "after": ["good", "bad"], "last": ["after"], "apart": ["good"]}
    )
    (good, bad, worse) = await held(world, family, "good", "bad", "worse")
    await world.finish(good)
    await world.finish(bad, settlement=FAILED)
    await world.finish(worse, settlement=FAILED_UNKEPT)
    await world.cascade()
    await world.run(family, "apart")
    assert (await world.look_job(family)).state is JobState.FAILED
    assert await retry(world, family.id) == JobRetried(2, 2)
    job = await world.look_job(family)
    assert (job.state, job.open, job.finished_us, job.failing_since_us) == (JobState.RUNNING, 4, None, None)
    assert await world.states(family) == {
        "good": S.SUCCEEDED,
        "bad": S.QUEUED,
        "worse": S.QUEUED,
        "after": S.PENDING,
        "last": S.PENDING,
        "apart": S.SUCCEEDED,
    }
    assert (await world.look(family["bad"])).generation == 2
    await world.run(family, "bad", "worse")
    await world.run(family, "after")
    await world.run(family, "last")
    job = await world.look_job(family)
    assert (job.state, ends_of(job)) == (JobState.SUCCEEDED, {"succeeded": 6})


async def test_a_task_that_expired_runs_again_with_a_fresh_ttl(world: World) -> None:
    family = await world.submit_job({"late": [], "after": ["late"]}, tasks={"late": {"ttl": 10}})
    world.advance(11)
    await world.ledger.expire(10)
    await world.cascade()
    assert (await world.look_job(family)).state is JobState.FAILED
    assert await retry(world, family.id) == JobRetried(1, 1)
    task = await world.look(family["late"])
    assert task.expires_us is not None
    assert task.expires_us > await world.now_us()
    await world.run(family, "late")
    await world.run(family, "after")
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


async def test_what_a_failure_had_stopped_runs_again_too(world: World) -> None:
    family = await world.submit_job(
        {"bad": [], "ready": [], "good": [], "after": ["ready"], "free": ["good"]}, policy="cancel_job"
    )
    (bad, ready, good) = await held(world, family, "bad", "ready", "good")
    await world.finish(good)
    await world.finish(bad, settlement=FAILED)
    await world.cascade()
    await world.settle(ready, DONE)
    await world.cascade()
    states = await world.states(family)
    assert (states["after"], states["free"]) == (S.CANCELLED, S.CANCELLED)
    assert (await world.look_job(family)).state is JobState.FAILED
    retried = await retry(world, family.id)
    assert retried.redriven == 1
    states = await world.states(family)
    assert (states["bad"], states["free"]) == (S.QUEUED, S.QUEUED)
    await world.cascade()
    for _ in range(3):
        await world.finish(*(await world.claim(5)))
    assert (await world.look_job(family)).open == 0


async def test_a_retry_of_a_job_of_which_nothing_failed_is_refused(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]})
    with world.unchanged():
        with pytest.raises(Conflict, match="nothing of job"):
            await retry(world, family.id)
        with pytest.raises(NotFound):
            await retry(world, world.ids.new())
        with pytest.raises(NotFound):
            await retry(world, family.id, "other")
    await world.run(family, "a")
    await world.run(family, "b")
    with world.unchanged(), pytest.raises(Conflict, match="nothing of job"):
        await retry(world, family.id)


async def test_a_second_retry_changes_nothing(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]})
    await world.run(family, "a", settlement=FAILED)
    await world.cascade()
    await retry(world, family.id)
    with world.unchanged(), pytest.raises(Conflict):
        await retry(world, family.id)
    await world.run(family, "a")
    await world.run(family, "b")


async def test_a_job_that_still_runs_retries_what_has_failed_so_far(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": ["a", "b"]})
    (a, b) = await held(world, family, "a", "b")
    await world.finish(a, settlement=FAILED)
    assert await retry(world, family.id) == JobRetried(1, 1)
    assert (await world.look(family["c"])).waits == 2
    await world.finish(b)
    await world.run(family, "a")
    await world.run(family, "c")
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


async def test_a_job_that_is_being_cancelled_is_not_retried(world: World) -> None:
    family = await world.submit_job({"a": [], "b": []})
    (a, b) = await held(world, family, "a", "b")
    await world.finish(a, settlement=FAILED)
    await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", None)
    with world.unchanged(), pytest.raises(Conflict, match="is being cancelled"):
        await retry(world, family.id)
    await world.cascade()
    await world.settle(b, DONE)


async def test_what_somebody_cancelled_stays_cancelled(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": ["b"]})
    await world.cancel(family["b"])
    await world.run(family, "a", settlement=FAILED)
    await world.cascade()
    assert await retry(world, family.id) == JobRetried(1, 0)
    states = await world.states(family)
    assert (states["b"], states["c"]) == (S.CANCELLED, S.CANCELLED)
    await world.run(family, "a")


async def test_a_retry_is_told_once_in_the_jobs_history_and_in_each_tasks(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]})
    await world.run(family, "a", settlement=FAILED)
    await world.cascade()
    world.advance(1)
    await retry(world, family.id)
    events = await world.views.job_events(ORGANIZATION, family.id)
    (told,) = [each for each in events if each.type == "retried"]
    assert (told.actor, told.data["redriven"], told.data["revived"]) == ("bob", 1, 1)
    assert "redriven" not in [each.type for each in events]
    own = await world.views.events(ORGANIZATION, family["a"])
    (redriven,) = [each for each in own if each.type == "redriven"]
    assert redriven.actor == "bob"
    world.advance(1)
    await world.run(family, "a")
    await world.run(family, "b")
    assert [each.type for each in await world.views.job_events(ORGANIZATION, family.id)][-1] == "ended"


async def test_added_tasks_that_failed_are_retried_like_the_others(world: World) -> None:
    from conformance.growths import grown

    family = await world.submit_job({"split": []})
    (split,) = await held(world, family, "split")
    await grown(world, family, split, {"page": [], "join": ["page"]})
    await world.finish(split)
    await world.run(family, "page", settlement=FAILED)
    await world.cascade()
    assert await retry(world, family.id) == JobRetried(1, 1)
    await world.run(family, "page")
    await world.run(family, "join")
    assert (await world.look_job(family)).state is JobState.SUCCEEDED
