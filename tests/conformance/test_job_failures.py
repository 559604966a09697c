"""Jobs: failures and cancels travel along edges; the job ends by the worst of its tasks."""

import pytest

from conformance.families import DIAMOND, ends_of, held
from conformance.making import (
    DONE,
    FAILED,
    HOUR,
    ORGANIZATION,
    PARTLY_DONE,
    World,
    retry_in,
    settling,
)
from perdure.domain.settlement import Settlement
from perdure.domain.states import JobState, Reason, TaskState
from perdure.errors import NotFound

S = TaskState

# How a failure travels


async def outcome(world: World, trigger: str, ends: dict[str, Settlement], policy: str = "fail") -> TaskState:
    """The state of a child with that trigger once its parents ended so, one after the other."""
    family = await world.submit_job(
        {**{name: [] for name in ends}, "child": list(ends)},
        tasks={"child": {"trigger": trigger}},
        policy=policy,
    )
    leases = await held(world, family, *ends)
    for lease, settlement in zip(leases, ends.values(), strict=True):
        await world.finish(lease, settlement=settlement)
    await world.cascade()
    task = await world.look(family["child"])
    if task.state is S.CANCELLED:
        expected = Reason.UPSTREAM_FAILED if trigger == "all_succeeded" else Reason.TRIGGER_UNMET
        assert task.reason is expected
    return task.state


GIVEN_UP = Settlement.gave_up("why")


@pytest.mark.parametrize(
    ("trigger", "first", "second", "state"),
    [
        ("all_succeeded", DONE, DONE, S.QUEUED),
        ("all_succeeded", DONE, PARTLY_DONE, S.QUEUED),
        ("all_succeeded", DONE, FAILED, S.CANCELLED),
        ("all_succeeded", FAILED, DONE, S.CANCELLED),
        ("all_succeeded", DONE, GIVEN_UP, S.CANCELLED),
        ("all_done", DONE, DONE, S.QUEUED),
        ("all_done", FAILED, DONE, S.QUEUED),
        ("all_done", FAILED, GIVEN_UP, S.QUEUED),
        ("any_succeeded", DONE, FAILED, S.QUEUED),
        ("any_succeeded", FAILED, PARTLY_DONE, S.QUEUED),
        ("any_succeeded", FAILED, FAILED, S.CANCELLED),
        ("any_failed", DONE, FAILED, S.QUEUED),
        ("any_failed", GIVEN_UP, DONE, S.QUEUED),
        ("any_failed", DONE, PARTLY_DONE, S.CANCELLED),
    ],
)
async def test_a_trigger_says_when_a_child_may_run(
    world: World, trigger: str, first: Settlement, second: Settlement, state: TaskState
) -> None:
    assert await outcome(world, trigger, {"a": first, "b": second}) is state


@pytest.mark.parametrize("trigger", ["all_done", "any_failed"])
async def test_a_trigger_that_asks_for_failures_sees_a_cancelled_or_expired_parent(world: World, trigger: str) -> None:
    family = await world.submit_job(
        {"a": [], "b": [], "child": ["a", "b"]}, tasks={"child": {"trigger": trigger}, "b": {"ttl": 10}}
    )
    await world.cancel(family["a"])
    world.advance(10)
    await world.ledger.expire(10)
    await world.cascade()
    await world.run(family, "child")


async def test_a_child_that_can_never_run_is_cancelled_before_its_other_parents_end(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": ["a", "b"]})
    (a, b) = await held(world, family, "a", "b")
    await world.finish(a, settlement=FAILED)
    task = await world.look(family["c"])
    assert (task.state, task.reason) == (S.CANCELLED, Reason.UPSTREAM_FAILED)
    await world.finish(b)
    assert (await world.look_job(family)).state is JobState.FAILED


async def test_the_children_of_a_failed_task_are_settled_with_it_and_deeper_ones_by_the_cascade(world: World) -> None:
    names = [f"t{n}" for n in range(10)]
    family = await world.submit_job({name: names[max(0, n - 1) : n] for n, name in enumerate(names)})
    await world.run(family, "t0", settlement=FAILED)
    states = await world.states(family)
    assert (states["t0"], states["t1"]) == (S.DEAD_LETTERED, S.CANCELLED)
    await world.cascade()
    assert set((await world.states(family)).values()) == {S.DEAD_LETTERED, S.CANCELLED}
    job = await world.look_job(family)
    assert (job.state, job.open, ends_of(job)) == (JobState.FAILED, 0, {"failed": 1, "cancelled": 9})


async def test_a_cascade_is_bounded_and_goes_on(world: World) -> None:
    names = [f"t{n}" for n in range(30)]
    family = await world.submit_job({name: names[max(0, n - 1) : n] for n, name in enumerate(names)})
    await world.run(family, "t0", settlement=FAILED)
    calls = 0
    while True:
        swept = await world.ledger.cascade(5)
        assert swept.moved <= 5
        calls += 1
        if not swept.more:
            break
    assert calls >= 5
    assert (await world.look_job(family)).open == 0


async def test_a_cascade_over_a_thousand_children_ends_them_all(world: World) -> None:
    width = 1_000
    family = await world.submit_job(
        {"top": [], **{f"c{n}": ["top"] for n in range(width)}, "last": [f"c{n}" for n in range(width)]}
    )
    await world.run(family, "top", settlement=FAILED)
    await world.cascade()
    job = await world.look_job(family)
    assert (job.state, ends_of(job)) == (JobState.FAILED, {"failed": 1, "cancelled": width + 1})


async def test_a_failure_excused_by_its_edge_lets_the_child_run(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]}, edges={("a", "b"): "continue"})
    await world.run(family, "a", settlement=FAILED)
    await world.run(family, "b")
    assert (await world.look_job(family)).state is JobState.PARTIALLY_SUCCEEDED


async def test_edges_of_one_task_may_mean_different_things(world: World) -> None:
    family = await world.submit_job({"a": [], "stops": ["a"], "goes_on": ["a"]}, edges={("a", "goes_on"): "continue"})
    await world.run(family, "a", settlement=FAILED)
    assert await world.states(family) == {"a": S.DEAD_LETTERED, "stops": S.CANCELLED, "goes_on": S.QUEUED}
    await world.run(family, "goes_on")
    assert (await world.look_job(family)).state is JobState.PARTIALLY_SUCCEEDED


async def test_a_job_that_continues_runs_everything(world: World) -> None:
    family = await world.submit_job(DIAMOND, policy="continue")
    await world.run(family, "top", settlement=FAILED)
    await world.run(family, "left", "right", settlement=FAILED)
    await world.run(family, "bottom")
    job = await world.look_job(family)
    assert (job.state, ends_of(job)) == (JobState.PARTIALLY_SUCCEEDED, {"failed": 3, "succeeded": 1})


async def test_a_failure_that_cancels_the_job_stops_everything(world: World) -> None:
    family = await world.submit_job(
        {"a": [], "waits": [], "runs": [], "later": ["waits"]},
        policy="cancel_job",
        tasks={"waits": {"delay": HOUR}},
    )
    (a, runs) = await held(world, family, "a", "runs")
    await world.finish(a, settlement=FAILED)
    await world.cascade()
    states = await world.states(family)
    assert states == {"a": S.DEAD_LETTERED, "waits": S.CANCELLED, "runs": S.CANCELLING, "later": S.CANCELLED}
    await world.settle(runs, Settlement.acknowledged())
    job = await world.look_job(family)
    assert (job.state, job.open) == (JobState.FAILED, 0)


async def test_failing_since_tells_the_first_failure_at_once(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": ["b"]})
    (a, b) = await held(world, family, "a", "b")
    world.advance(5)
    failed_at = await world.now_us()
    await world.finish(a, settlement=FAILED)
    world.advance(5)
    job = await world.look_job(family)
    assert (job.state, job.failing_since_us) == (JobState.RUNNING, failed_at)
    await world.finish(b)
    await world.run(family, "c")
    job = await world.look_job(family)
    assert (job.state, job.failing_since_us) == (JobState.FAILED, failed_at)


@pytest.mark.parametrize(
    ("ends", "state"),
    [
        ([DONE, DONE], JobState.SUCCEEDED),
        ([DONE, PARTLY_DONE], JobState.PARTIALLY_SUCCEEDED),
        ([DONE, FAILED], JobState.FAILED),
        ([PARTLY_DONE, FAILED], JobState.FAILED),
        ([DONE, GIVEN_UP], JobState.SUCCEEDED),
        ([GIVEN_UP, GIVEN_UP], JobState.CANCELLED),
        ([FAILED, GIVEN_UP], JobState.FAILED),
        ([Settlement.expired_unstarted(), DONE], JobState.FAILED),
    ],
)
async def test_a_job_ends_by_the_worst_of_its_tasks(world: World, ends: list[Settlement], state: JobState) -> None:
    family = await world.submit_job({"a": [], "b": []})
    leases = await held(world, family, "a", "b")
    await world.ledger.settle([settling(*each) for each in zip(leases, ends, strict=True)])
    assert (await world.look_job(family)).state is state


@pytest.mark.parametrize(
    ("excused", "other", "state"),
    [
        (FAILED, DONE, JobState.PARTIALLY_SUCCEEDED),
        (FAILED, FAILED, JobState.FAILED),
        (FAILED, GIVEN_UP, JobState.PARTIALLY_SUCCEEDED),
        (PARTLY_DONE, DONE, JobState.PARTIALLY_SUCCEEDED),
    ],
)
async def test_a_failure_that_the_job_continues_after_is_no_failure_of_the_job(
    world: World, excused: Settlement, other: Settlement, state: JobState
) -> None:
    family = await world.submit_job({"a": [], "b": [], "after": ["a"]}, edges={("a", "after"): "continue"})
    (a, b) = await held(world, family, "a", "b")
    await world.finish(a, settlement=excused)
    await world.finish(b, settlement=other)
    await world.run(family, "after")
    assert (await world.look_job(family)).state is state


@pytest.mark.parametrize("ends", [[DONE, DONE], [FAILED, DONE], [PARTLY_DONE, DONE]])
async def test_a_cancelled_job_ends_cancelled_however_its_tasks_do(world: World, ends: list[Settlement]) -> None:
    family = await world.submit_job({"a": [], "b": []})
    for lease, settlement in zip(await held(world, family, "a", "b"), ends, strict=True):
        await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", None)
        await world.finish(lease, settlement=settlement)
    assert (await world.look_job(family)).state is JobState.CANCELLED


# Cancelling


async def test_cancelling_a_job_stops_what_waits_at_once_and_what_runs_when_it_answers(world: World) -> None:
    family = await world.submit_job(DIAMOND)
    await world.run(family, "top")
    (left, right) = await held(world, family, "left", "right")
    assert await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", "enough")
    await world.cascade()
    assert await world.states(family) == {
        "top": S.SUCCEEDED,
        "left": S.CANCELLING,
        "right": S.CANCELLING,
        "bottom": S.CANCELLED,
    }
    job = await world.look_job(family)
    assert job.state is JobState.RUNNING
    assert job.cancel is not None
    assert (job.cancel.actor, job.cancel.text) == ("bob", "enough")
    await world.settle(left, DONE)
    await world.settle(right, Settlement.acknowledged())
    assert (await world.look_job(family)).state is JobState.CANCELLED


async def test_cancelling_a_job_twice_keeps_the_first_request(world: World) -> None:
    family = await world.submit_job(DIAMOND)
    assert await world.ledger.cancel_job(ORGANIZATION, family.id, "first", "one")
    await world.ledger.cancel_job(ORGANIZATION, family.id, "second", "two")
    job = await world.look_job(family)
    assert job.cancel is not None
    assert job.cancel.actor == "first"
    await world.cascade()
    job = await world.look_job(family)
    assert (job.state, ends_of(job)) == (JobState.CANCELLED, {"cancelled": 4})


async def test_cancelling_a_job_that_ended_is_told_so(world: World) -> None:
    family = await world.submit_job({"a": []})
    await world.run(family, "a")
    with world.unchanged():
        assert not await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", None)


async def test_cancelling_an_unknown_or_foreign_job_is_not_found(world: World) -> None:
    family = await world.submit_job({"a": []})
    with world.unchanged():
        for organization, job_id in ((ORGANIZATION, world.ids.new()), ("other", family.id)):
            with pytest.raises(NotFound):
                await world.ledger.cancel_job(organization, job_id, "bob", None)


async def test_nothing_of_a_cancelled_job_is_retried_or_unblocked(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"], "c": []})
    (a, c) = await held(world, family, "a", "c")
    await world.settle(c, retry_in(5))
    await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", None)
    await world.cascade()
    await world.settle(a, DONE)
    await world.cascade()
    world.advance(10)
    assert await world.claim(10) == []
    assert (await world.look_job(family)).state is JobState.CANCELLED


async def test_cancelling_one_task_of_a_job_fails_what_depends_on_it(world: World) -> None:
    family = await world.submit_job(DIAMOND)
    await world.run(family, "top")
    await world.cancel(family["left"])
    await world.cascade()
    assert await world.states(family) == {
        "top": S.SUCCEEDED,
        "left": S.CANCELLED,
        "right": S.QUEUED,
        "bottom": S.CANCELLED,
    }
    task = await world.look(family["bottom"])
    assert task.reason is Reason.UPSTREAM_FAILED
    await world.run(family, "right")
    assert (await world.look_job(family)).state is JobState.SUCCEEDED
