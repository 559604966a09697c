"""Jobs: a child runs once, after all it needs; failures travel along edges; counters and states are always right."""

import pytest

from conformance.making import (
    DONE,
    FAILED,
    HOUR,
    ORGANIZATION,
    PARTLY_DONE,
    RESULT,
    Family,
    World,
    retry_in,
    settling,
    us,
)
from perdure.domain.attempt import Lease
from perdure.domain.settlement import Settlement
from perdure.domain.states import JobState, Reason, TaskState
from perdure.domain.task import Body
from perdure.errors import LeaseLost, NotFound, TooLarge
from perdure.store.ledger import ParentResult
from perdure.store.views import JobView

S = TaskState
DIAMOND: dict[str, list[str]] = {"top": [], "left": ["top"], "right": ["top"], "bottom": ["left", "right"]}


async def held(world: World, family: Family, *names: str) -> list[Lease]:
    """Claim exactly these tasks, in this order of the answer."""
    leases = {family.names[lease.hold.task_id]: lease for lease in await world.claim(len(names) + 1)}
    assert set(leases) == set(names)
    return [leases[name] for name in names]


def ends_of(job: JobView) -> dict[str, int]:
    """How its tasks ended, as far as any did; `failed` has the dead-lettered and the expired ones too."""
    return {state: count for state, count in job.counts.items() if count and state in ENDS}


ENDS = ("succeeded", "partially_succeeded", "failed", "cancelled")


# Running in order


async def test_a_diamond_runs_in_order_and_the_job_follows(world: World) -> None:
    family = await world.submit_job(DIAMOND)
    assert (await world.look_job(family)).state is JobState.PENDING
    assert await world.states(family) == {"top": S.QUEUED, "left": S.PENDING, "right": S.PENDING, "bottom": S.PENDING}
    (top,) = await held(world, family, "top")
    job = await world.look_job(family)
    assert (job.state, job.started_us) == (JobState.RUNNING, await world.now_us())
    await world.finish(top)
    (left, right) = await held(world, family, "left", "right")
    await world.finish(left)
    assert await world.claim(5) == []
    await world.finish(right)
    world.advance(1)
    await world.run(family, "bottom")
    job = await world.look_job(family)
    assert (job.state, job.total, job.open) == (JobState.SUCCEEDED, 4, 0)
    assert job.finished_us == await world.now_us()
    assert ends_of(job) == {"succeeded": 4}


async def test_two_parents_that_end_in_one_call_both_count(world: World) -> None:
    family = await world.submit_job(DIAMOND)
    await world.run(family, "top")
    await world.run(family, "left", "right")
    await world.run(family, "bottom")
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


async def test_two_parents_that_fail_and_succeed_in_one_call_both_count(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": ["a", "b"]}, tasks={"c": {"trigger": "all_done"}})
    (a, b) = await held(world, family, "a", "b")
    await world.ledger.settle([settling(a, FAILED), settling(b, DONE)])
    await world.run(family, "c")


async def test_a_repeated_settle_of_a_parent_counts_once(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": ["a", "b"]})
    (a, b) = await held(world, family, "a", "b")
    await world.ledger.settle([settling(a, DONE), settling(a, DONE)])
    await world.settle(a, DONE)
    assert (await world.look(family["c"])).waits == 1
    assert await world.claim(5) == []
    await world.finish(b)
    assert len(await world.claim(5)) == 1


async def test_a_child_is_queued_once_however_many_parents_end(world: World) -> None:
    graph: dict[str, list[str]] = {f"p{n}": [] for n in range(20)}
    family = await world.submit_job({**graph, "child": list(graph)})
    leases = await world.claim(20)
    for n in range(0, 20, 5):
        await world.finish(*leases[n : n + 5])
    (child,) = await held(world, family, "child")
    assert child.parents == 20
    assert await world.claim(5) == []


async def test_a_thousand_children_behind_one_parent(world: World) -> None:
    await fan_out(world, 1_000)


async def test_a_thousand_parents_before_one_child(world: World) -> None:
    await fan_in(world, 1_000)


@pytest.mark.slow
async def test_ten_thousand_children_and_ten_thousand_parents(world: World) -> None:
    await fan_out(world, 10_000)
    await fan_in(world, 10_000)


async def fan_out(world: World, width: int) -> None:
    family = await world.submit_job({"parent": [], **{f"c{n}": ["parent"] for n in range(width)}})
    await world.run(family, "parent")
    await world.cascade()
    done = 0
    while leases := await world.claim(1000):
        await world.finish(*leases)
        done += len(leases)
    assert done == width
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


async def fan_in(world: World, width: int) -> None:
    graph: dict[str, list[str]] = {f"p{n}": [] for n in range(width)}
    family = await world.submit_job({**graph, "child": list(graph)})
    done = 0
    while done < width:
        leases = await world.claim(1000)
        await world.finish(*leases)
        done += len(leases)
    await world.run(family, "child")
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


async def test_a_delayed_child_waits_for_its_parents_and_its_time(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]}, tasks={"b": {"delay": 100}})
    await world.run(family, "a")
    assert (await world.states(family))["b"] is S.PENDING
    assert await world.claim(5) == []
    world.advance(100)
    await world.run(family, "b")


async def test_a_child_whose_time_came_first_waits_for_its_parents(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]}, tasks={"b": {"delay": 10}})
    world.advance(50)
    with world.unchanged():
        assert (await world.ledger.promote(10)).moved == 0
    await world.run(family, "a")
    await world.run(family, "b")


async def test_a_retry_of_a_parent_holds_its_children_back(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]})
    await world.run(family, "a", settlement=retry_in(5))
    assert (await world.look_job(family)).state is JobState.RUNNING
    world.advance(5)
    await world.run(family, "a")
    await world.run(family, "b")


async def test_a_waiting_childs_ttl_runs_from_creation(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]}, tasks={"b": {"ttl": 30}})
    world.advance(30)
    await world.ledger.expire(10)
    await world.run(family, "a")
    assert await world.states(family) == {"a": S.SUCCEEDED, "b": S.EXPIRED}
    assert (await world.look_job(family)).state is JobState.FAILED


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
    assert (await world.look_job(family)).state is JobState.FAILED or True


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
        ([Settlement.expired_unstarted(), DONE], JobState.FAILED),
    ],
)
async def test_a_job_ends_by_the_worst_of_its_tasks(world: World, ends: list[Settlement], state: JobState) -> None:
    family = await world.submit_job({"a": [], "b": []})
    leases = await held(world, family, "a", "b")
    await world.ledger.settle([settling(*each) for each in zip(leases, ends, strict=True)])
    assert (await world.look_job(family)).state is state


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


# Redriving


async def test_a_redrive_runs_the_job_again_to_success(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"], "c": ["b"]})
    await world.run(family, "a", settlement=FAILED)
    await world.cascade()
    assert (await world.look_job(family)).state is JobState.FAILED
    assert await world.redrive(family["a"]) is S.QUEUED
    job = await world.look_job(family)
    assert (job.state, job.finished_us, job.failing_since_us) == (JobState.RUNNING, None, None)
    await world.cascade()
    for name in "abc":
        await world.run(family, name)
    job = await world.look_job(family)
    assert (job.state, ends_of(job)) == (JobState.SUCCEEDED, {"succeeded": 3})


async def test_a_redrive_of_one_of_two_failed_parents_revives_the_child_only_for_it(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": ["a", "b"]})
    await world.run(family, "a", "b", settlement=FAILED)
    assert await world.redrive(family["a"]) is S.QUEUED
    await world.cascade()
    await world.run(family, "a")
    await world.cascade()
    assert await world.claim(5) == []
    assert (await world.states(family))["c"] is S.CANCELLED
    assert (await world.look_job(family)).state is JobState.FAILED
    assert await world.redrive(family["b"]) is S.QUEUED
    await world.cascade()
    await world.run(family, "b")
    await world.run(family, "c")
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


async def test_a_redriven_task_that_fails_again_cancels_its_children_again(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"], "c": ["b"]})
    for _ in range(3):
        await world.run(family, "a", settlement=FAILED)
        await world.cascade()
        assert (await world.look_job(family)).state is JobState.FAILED
        await world.redrive(family["a"])
        await world.cascade()
    for name in "abc":
        await world.run(family, name)
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


async def test_a_redrive_of_a_parent_whose_child_went_on_does_not_run_the_child_twice(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]}, policy="continue")
    await world.run(family, "a", settlement=FAILED)
    await world.run(family, "b")
    await world.redrive(family["a"])
    await world.cascade()
    await world.run(family, "a")
    assert await world.claim(5) == []
    assert await world.states(family) == {"a": S.SUCCEEDED, "b": S.SUCCEEDED}
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


async def test_a_revived_child_keeps_nothing_of_its_cancelled_life(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]}, tasks={"b": {"ttl": 1000}})
    await world.run(family, "a", settlement=FAILED)
    world.advance(500)
    await world.redrive(family["a"])
    await world.cascade()
    task = await world.look(family["b"])
    assert (task.state, task.reason, task.cancel, task.finished_us) == (S.PENDING, None, None, None)
    assert task.waits == 1


async def test_a_task_of_a_job_can_be_redriven_while_another_runs(world: World) -> None:
    family = await world.submit_job({"a": [], "b": []})
    (a, b) = await held(world, family, "a", "b")
    await world.finish(a, settlement=FAILED)
    assert await world.redrive(family["a"]) is S.QUEUED
    await world.finish(b)
    assert (await world.look_job(family)).state is JobState.RUNNING
    await world.run(family, "a")
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


async def test_a_dead_letter_can_be_redriven_with_another_payload(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease, settlement=FAILED)
    await world.redrive(lease.hold.task_id, payload=Body(b'{"n":2}'))
    again = await world.claim_one()
    assert again.payload == Body(b'{"n":2}')


async def test_a_redrive_does_not_lift_the_cancel_of_a_job_that_is_still_stopping(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": []})
    (a, b, _c) = await held(world, family, "a", "b", "c")
    await world.finish(a, settlement=FAILED)
    await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", "enough")
    await world.redrive(family["a"])
    await world.cascade()
    assert await world.claim(5) == []
    states = await world.states(family)
    assert (states["b"], states["c"]) == (S.CANCELLING, S.CANCELLING)
    assert (await world.settle(b, DONE)).state is S.CANCELLED


async def test_a_redrive_between_a_failure_and_its_cascade_counts_no_parent_twice(world: World) -> None:
    family = await world.submit_job(
        {"x": [], "a": [], "y": ["x"], "z": ["y", "a"]}, tasks={"z": {"trigger": "all_done"}}
    )
    (x, a) = await held(world, family, "x", "a")
    await world.finish(a, settlement=FAILED)
    await world.finish(x, settlement=FAILED)
    assert await world.redrive(family["a"]) is S.QUEUED
    await world.cascade()
    assert await world.states(family) == {
        "x": S.DEAD_LETTERED,
        "a": S.QUEUED,
        "y": S.CANCELLED,
        "z": S.PENDING,
    }
    await world.run(family, "a")
    await world.run(family, "z")


async def test_a_child_is_not_revived_without_a_parent_that_was_purged(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": ["a", "b"]})
    await world.run(family, "a", "b", settlement=FAILED)
    await world.ledger.purge(ORGANIZATION, [family["a"]], "bob")
    await world.redrive(family["b"])
    await world.cascade()
    await world.run(family, "b")
    await world.cascade()
    assert await world.claim(5) == []


@pytest.mark.parametrize("trigger", ["all_succeeded", "all_done", "any_succeeded", "any_failed"])
async def test_a_trigger_of_a_task_without_parents_means_nothing(world: World, trigger: str) -> None:
    family = await world.submit_job({"a": []}, tasks={"a": {"trigger": trigger}})
    await world.run(family, "a", settlement=FAILED)
    assert await world.redrive(family["a"]) is S.QUEUED
    await world.run(family, "a")


# Triggers before all parents ended


@pytest.mark.parametrize(("trigger", "end"), [("any_succeeded", DONE), ("any_failed", FAILED)])
async def test_a_trigger_for_any_parent_need_not_wait_for_the_others(
    world: World, trigger: str, end: Settlement
) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": ["a", "b"]}, tasks={"c": {"trigger": trigger}})
    (a, b) = await held(world, family, "a", "b")
    await world.finish(a, settlement=end)
    (c,) = await held(world, family, "c")
    await world.finish(b, settlement=end)
    assert await world.claim(5) == []
    await world.finish(c)
    assert (await world.look_job(family)).open == 0


async def test_a_trigger_that_was_met_early_keeps_waiting_for_its_time_alone(world: World) -> None:
    family = await world.submit_job(
        {"a": [], "b": [], "c": ["a", "b"]}, tasks={"c": {"trigger": "any_succeeded", "delay": 100}}
    )
    (a, b) = await held(world, family, "a", "b")
    await world.finish(a)
    assert (await world.states(family))["c"] is S.PENDING
    await world.finish(b, settlement=FAILED)
    await world.cascade()
    assert (await world.states(family))["c"] is S.PENDING
    world.advance(100)
    await world.run(family, "c")


# Results along edges


async def test_a_child_sees_its_parents_results_by_name(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": ["a", "b"]}, policy="continue")
    (a, b) = await held(world, family, "a", "b")
    await world.ledger.settle([settling(a, DONE), settling(b, FAILED)])
    (c,) = await held(world, family, "c")
    with world.unchanged():
        inputs = await world.ledger.inputs(c.hold)
    assert inputs == {"a": ParentResult(S.SUCCEEDED, RESULT), "b": ParentResult(S.DEAD_LETTERED, None)}


async def test_a_task_without_parents_has_no_inputs(world: World) -> None:
    lease = await world.lease()
    assert await world.ledger.inputs(lease.hold) == {}


async def test_only_the_live_attempt_sees_its_inputs(world: World) -> None:
    lease = await world.lease()
    world.advance(60)
    with pytest.raises(LeaseLost):
        await world.ledger.inputs(lease.hold)


async def test_inputs_over_their_limit_are_refused(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    from perdure.domain import limits

    family = await world.submit_job({"a": [], "b": ["a"]})
    await world.run(family, "a")
    lease = await world.claim_one()
    monkeypatch.setattr(limits, "INPUTS_MAX_BYTES", 3)
    with pytest.raises(TooLarge):
        await world.ledger.inputs(lease.hold)


async def test_the_answer_maps_names_to_ids(world: World) -> None:
    job = world.job(DIAMOND)
    (answer,) = await world.ledger.submit_jobs([job])
    assert answer.task_ids == {task.name: task.id for task in job.tasks}  # type: ignore[union-attr]
    rows = await world.views.job_tasks(ORGANIZATION, job.id)
    assert [row.name for row in rows] == list(DIAMOND)
    assert {row.name: set(row.parents) for row in rows} == {name: set(above) for name, above in DIAMOND.items()}


async def test_a_jobs_history_tells_when_it_began_and_ended(world: World) -> None:
    family = await world.submit_job({"a": []})
    world.advance(1)
    lease = await world.claim_one()
    world.advance(1)
    await world.finish(lease)
    events = await world.views.job_events(ORGANIZATION, family.id)
    now = await world.now_us()
    assert [each.at_us for each in events] == [now - us(2), now - us(1), now]


async def test_many_jobs_at_once_do_not_mix(world: World) -> None:
    families = [await world.submit_job(DIAMOND) for _ in range(20)]
    for _ in range(3):
        leases = await world.claim(100)
        await world.finish(*leases)
    for family in families:
        job = await world.look_job(family)
        assert (job.state, ends_of(job)) == (JobState.SUCCEEDED, {"succeeded": 4})
