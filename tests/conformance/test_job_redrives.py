"""Jobs: what a redrive of one task means for the others."""

from conformance.families import ends_of, held
from conformance.making import (
    DONE,
    FAILED,
    ORGANIZATION,
    World,
)
from perdure.domain.states import JobState, TaskState
from perdure.domain.task import Body
from perdure.store.ledger import Redrive

S = TaskState


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


async def test_what_is_revived_names_who_redrove_it_though_others_redrive_in_the_same_call(world: World) -> None:
    families = [await world.submit_job({"a": [], "b": ["a"]}) for _ in range(2)]
    for family in families:
        await world.run(family, "a", settlement=FAILED)
    await world.ledger.redrive(
        [
            Redrive(ORGANIZATION, family["a"], actor, None)
            for family, actor in zip(families, ("bob", "carol"), strict=True)
        ]
    )
    events = [await world.views.events(ORGANIZATION, family["b"]) for family in families]
    assert [[each.actor for each in some if each.type == "revived"] for some in events] == [["bob"], ["carol"]]
