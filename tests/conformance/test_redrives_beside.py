"""Redrives beside others: payloads, jobs, histories and cascades that are not meant stay as they are."""

from typing import Any

from conformance.making import FAILED, ORGANIZATION, Family, World
from perdure.domain.states import JobState, TaskState
from perdure.domain.task import Body

S = TaskState


async def dead_letter(world: World, **given: Any) -> str:
    lease = await world.lease(**given)
    await world.finish(lease, settlement=FAILED)
    return lease.hold.task_id


async def payload_of(world: World, task_id: str) -> bytes | None:
    payload = (await world.look(task_id)).payload
    return None if payload is None else payload.data


async def test_a_new_payload_is_that_of_one_task(world: World) -> None:
    ended, waiting = await dead_letter(world, payload="1"), await world.submit(payload="2", delay=60)
    mine = await dead_letter(world, payload="3")
    assert await world.redrive(mine, payload=Body(b"4")) is S.QUEUED
    assert [await payload_of(world, each) for each in (ended, waiting, mine)] == [b"1", b"2", b"4"]


async def fallen(world: World) -> Family:
    """A job that has ended with its first task."""
    family = await world.submit_job({"a": [], "b": ["a"], "c": ["b"]})
    await world.run(family, "a", settlement=FAILED)
    await world.cascade()
    assert (await world.look_job(family)).state is JobState.FAILED
    return family


async def test_the_histories_of_other_jobs_tell_nothing_of_it(world: World) -> None:
    beside, family = await fallen(world), await fallen(world)
    failing = await world.submit_job({"x": [], "y": []}, tasks={"y": {"delay": 60}})
    await world.run(failing, "x", settlement=FAILED)
    others = {each.id: await world.views.job_events(ORGANIZATION, each.id) for each in (beside, failing)}
    await world.redrive(family["a"])
    for id, before in others.items():
        assert await world.views.job_events(ORGANIZATION, id) == before
    told = [each.type for each in await world.views.job_events(ORGANIZATION, family.id)]
    assert (told.count("failing"), told.count("ended")) == (1, 1)


async def test_only_those_of_the_redriven_job_are_told_of_in_its_history(world: World) -> None:
    families = [await fallen(world) for _ in range(3)]
    await world.redrive(families[1]["a"])
    rows = world.snapshot()["events"]
    assert sorted(row["type"] for row in rows if row["job"] is not None) == ["ended", "failing", "redriven"]


async def test_who_is_named_for_what_is_revived_is_whoever_it_was_submitted_for(world: World) -> None:
    await dead_letter(world, initiator="zoe")
    family = await world.submit_job({"a": [], "b": ["a"]}, tasks={"b": {"initiator": "carol"}})
    await world.submit(initiator="dave", delay=60)
    await world.run(family, "a", settlement=FAILED)
    await world.redrive(family["a"])
    revived = [row for row in world.snapshot()["events"] if row["type"] == "revived"]
    assert [row["initiator"] for row in revived] == ["carol"]


async def test_a_cascade_of_another_job_goes_on(world: World) -> None:
    beside = await world.submit_job({"a": [], "b": ["a"], "c": ["b"], "d": ["c"]})
    await world.run(beside, "a", settlement=FAILED)
    await world.redrive(await dead_letter(world))
    await world.cascade()
    assert set((await world.states(beside)).values()) == {S.DEAD_LETTERED, S.CANCELLED}


async def test_the_grandchild_of_a_task_that_was_removed_is_not_revived(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"], "x": [], "c": ["b", "x"], "d": ["c"]})
    await world.run(family, "a", "x", settlement=FAILED)
    await world.cascade()
    assert await world.ledger.purge(ORGANIZATION, [family["x"]], "bob") == [True]
    await world.redrive(family["a"])
    await world.cascade()
    states = await world.states(family)
    assert (states["b"], states["c"], states["d"]) == (S.PENDING, S.CANCELLED, S.CANCELLED)
    await world.run(family, "a")
    await world.run(family, "b")
    assert (await world.states(family))["c"] is S.CANCELLED


async def test_a_job_that_a_failure_had_stopped_is_not_stopped_again_by_its_redrive(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]}, policy="cancel_job")
    await world.run(family, "a", settlement=FAILED)
    await world.cascade()
    assert (await world.look_job(family)).state is JobState.FAILED
    await world.redrive(family["a"])
    await world.cascade()
    assert await world.states(family) == {"a": S.QUEUED, "b": S.PENDING}


async def test_a_request_to_stop_is_over_with_the_end_of_its_job(world: World) -> None:
    family = await world.submit_job({"a": [], "b": []}, tasks={"b": {"delay": 60}})
    (lease,) = await world.claim(1)
    await world.finish(lease, settlement=FAILED)
    await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", "not needed")
    await world.cascade()
    assert (await world.look_job(family)).state is JobState.CANCELLED
    assert await world.redrive(family["a"]) is S.QUEUED
    rows = [row for row in world.snapshot()["jobs"] if row["id"] == family.id]
    assert [(row["stopping"], row["cancel_us"], row["cancel_actor"], row["cancel_text"]) for row in rows] == [
        (None, None, None, None)
    ]
    await world.cascade()
    assert await world.state(family["a"]) is S.QUEUED


async def test_what_fell_and_would_have_been_excused_counts_as_cancelled_and_back(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"], "c": ["b"]}, edges={("b", "c"): "continue"})
    await world.run(family, "a", settlement=FAILED)
    await world.cascade()
    await world.redrive(family["a"])
    job = await world.look_job(family)
    assert (job.open, job.counts.get("cancelled", 0), job.counts.get("failed", 0)) == (3, 0, 0)
    for name in "cab":
        await world.run(family, name)
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


async def test_a_child_that_waits_for_its_time_alone_does_not_wait_for_a_redriven_parent(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]}, tasks={"b": {"trigger": "any_failed", "delay": 60}})
    await world.run(family, "a", settlement=FAILED)
    assert (await world.look(family["b"])).waits == 0
    await world.redrive(family["a"])
    assert (await world.look(family["b"])).waits == 0
    world.advance(60)
    await world.worker()
    await world.ledger.promote(10)
    assert await world.state(family["b"]) is S.QUEUED


async def test_nothing_hangs_on_a_child_that_was_removed(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]}, tasks={"b": {"trigger": "all_done"}})
    await world.run(family, "a")
    await world.run(family, "b", settlement=FAILED)
    assert await world.ledger.purge(ORGANIZATION, [family["b"]], "bob") == [True]
    assert world.snapshot()["edges"] == []


# Jobs that stop


async def test_a_job_that_stops_stops_nobody_elses_tasks(world: World) -> None:
    beside = await world.submit_job({"x": [], "y": ["x"]})
    alone = await world.submit()
    family = await world.submit_job({"a": [], "b": ["a"]})
    leases = await world.claim(3)
    assert {lease.hold.task_id for lease in leases} == {beside["x"], alone, family["a"]}
    waiting = await world.submit()
    await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", None)
    assert await world.cascade() == 2
    assert await world.states(family) == {"a": S.CANCELLING, "b": S.CANCELLED}
    assert await world.states(beside) == {"x": S.LEASED, "y": S.PENDING}
    assert [await world.state(each) for each in (alone, waiting)] == [S.LEASED, S.QUEUED]
