"""Jobs: a child runs once, after all it needs, and sees its parents' results."""

import pytest

from conformance.families import DIAMOND, ends_of, held
from conformance.making import (
    DONE,
    FAILED,
    ORGANIZATION,
    RESULT,
    World,
    retry_in,
    settling,
    us,
)
from perdure.domain.settlement import Settlement
from perdure.domain.states import JobState, TaskState
from perdure.errors import LeaseLost, TooLarge
from perdure.store.ledger import ParentResult

S = TaskState


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
    assert answer.task_ids == {task.rare.name: task.id for task in job.tasks}  # type: ignore[union-attr]
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
