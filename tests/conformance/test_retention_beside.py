"""What goes takes nothing of what stays: histories, marks, results, parts, jobs, workers, gates, acts."""

from typing import Any

import pytest

from conformance.making import (
    DONE,
    FAILED,
    HOUR,
    KIND,
    ORGANIZATION,
    PARTLY_DONE,
    World,
    part,
    us,
)
from conformance.test_gates import by_customer
from conformance.test_neighbours import put
from conformance.test_retention import KEEP, retain
from conformance.test_retention_choices import ended, kept, kind_says, result_of
from perdure.domain import limits
from perdure.domain.attempt import Progress
from perdure.domain.retention import Retention
from perdure.domain.states import JobState, TaskState

FOR_EVER = Retention(10**17)


# Histories


async def test_a_job_that_goes_takes_no_history_of_tasks_nor_of_acts(world: World) -> None:
    family = await world.submit_job({"a": []})
    await world.run(family, "a")
    world.advance(KEEP - 10)
    await world.worker()
    alone = await world.lease()
    await world.report(alone, phase="executing", progress=Progress(1))
    await world.definitions.put(ORGANIZATION, "queue", "q", "{}", "ann")
    await world.definitions.delete(ORGANIZATION, "queue", "q", "bob")
    before = await world.views.events(ORGANIZATION, alone.hold.task_id)
    acts = [row for row in world.snapshot()["events"] if row["n"] is None]
    assert acts
    world.advance(20)
    await retain(world)
    assert await world.views.job(ORGANIZATION, family.id) is None
    assert await world.views.events(ORGANIZATION, alone.hold.task_id) == before
    assert [row for row in world.snapshot()["events"] if row["n"] is None] == acts


async def test_the_history_of_a_job_goes_with_it_while_others_stay(world: World) -> None:
    gone = await world.submit_job({"a": []})
    await world.run(gone, "a", settlement=FAILED)
    await world.redrive(gone["a"])
    await world.run(gone, "a")
    world.advance(KEEP - 1)
    await world.worker()
    stays = await world.submit_job({"a": []})
    assert any(row["job"] is not None for row in world.snapshot()["events"])
    world.advance(2)
    await retain(world)
    assert await world.views.job(ORGANIZATION, gone.id) is None
    assert (await world.look_job(stays)).state is JobState.PENDING
    assert not any(row["job"] is not None for row in world.snapshot()["events"])


async def test_a_job_that_goes_in_steps_keeps_its_history_to_the_last(world: World) -> None:
    family = await world.submit_job({f"t{n}": [] for n in range(5)})
    await world.finish(*await world.claim(5), settlement=FAILED)
    await world.ledger.retry_job(ORGANIZATION, family.id, "bob")
    await world.finish(*await world.claim(5))
    world.advance(KEEP + 1)
    assert (await world.ledger.retain(Retention(us(KEEP)), 2)).more
    assert "retried" in {each.type for each in await world.views.job_events(ORGANIZATION, family.id)}
    await retain(world)
    assert await world.views.job(ORGANIZATION, family.id) is None


async def test_old_histories_are_kept_when_acts_of_their_time_go(world: World) -> None:
    await world.submit(delay=limits.ACTS_KEPT_US / limits.SECOND_US * 2)
    family = await world.submit_job(
        {"a": [], "b": []}, tasks={"b": {"delay": limits.ACTS_KEPT_US / limits.SECOND_US * 2}}
    )
    await world.run(family, "a", settlement=FAILED)
    await world.redrive(family["a"])
    await world.definitions.put(ORGANIZATION, "queue", "q", "{}", "ann")
    await world.definitions.delete(ORGANIZATION, "queue", "q", "bob")
    before = [row for row in world.snapshot()["events"] if row["n"] is not None or row["job"] is not None]
    assert {row["job"] is None for row in before} == {True, False}
    world.advance(limits.ACTS_KEPT_US / limits.SECOND_US + 1)
    await world.ledger.retain(FOR_EVER, 100)
    assert world.snapshot()["events"] == before


# Jobs, workers, gates


async def test_a_job_without_tasks_stays_for_its_time_when_another_goes(world: World) -> None:
    gone = await world.submit_job({"a": []})
    await world.run(gone, "a")
    world.advance(KEEP - 10)
    await world.worker()
    empty = await world.submit_job({"a": []})
    await world.run(empty, "a", settlement=FAILED)
    assert await world.ledger.purge(ORGANIZATION, [empty["a"]], "bob") == [True]
    world.advance(20)
    await retain(world)
    assert await world.views.job(ORGANIZATION, gone.id) is None
    assert (await world.look_job(empty)).state is JobState.FAILED


async def test_a_worker_that_holds_something_stays_however_long_it_was_not_seen(world: World) -> None:
    await world.worker("idle")
    await world.worker("busy")
    await world.submit(lease=HOUR)
    assert len(await world.claim(1, "busy")) == 1
    world.advance(2 * HOUR)
    await world.ledger.retain(Retention(us(KEEP)), 100)
    assert {row["id"] for row in world.snapshot()["workers"]} == {"busy"}


async def test_a_gate_that_was_used_lately_stays_though_nothing_is_at_it(world: World) -> None:
    await world.submit(options=by_customer(1))
    await world.finish(await world.claim_one())
    world.advance(60)
    await world.ledger.retain(FOR_EVER, 100)
    assert [row["key"] for row in world.snapshot()["gates"]] == ['"acme"']
    world.advance(2 * HOUR)
    await world.ledger.retain(FOR_EVER, 100)
    assert world.snapshot()["gates"] == []


# Results


async def with_part(world: World, settlement: Any, **given: Any) -> str:
    lease = await world.lease(**given)
    await world.report(lease, part=part(1))
    await world.finish(lease, settlement=settlement)
    return lease.hold.task_id


async def test_only_results_of_the_kind_that_says_so_go_early(world: World) -> None:
    await kind_says(world, result_retention=10)
    await world.worker(kinds=(KIND, "other"))
    mine, others = await ended(world), await ended(world, kind="other")
    dead = await with_part(world, FAILED)
    world.advance(11)
    assert await retain(world) == 1
    assert [await result_of(world, each) for each in (mine, others)] == [None, DONE.result]
    assert len(await world.views.parts(ORGANIZATION, dead)) == 1, "it has none that could have had its time"


@pytest.mark.parametrize(
    ("type", "name", "organization"),
    [("queue", KIND, ORGANIZATION), ("kind", "other", ORGANIZATION), ("kind", KIND, "elsewhere")],
)
async def test_what_other_documents_say_of_keeping_is_nothing_to_a_kind(
    world: World, type: str, name: str, organization: str
) -> None:
    document = {"retention": 5, "result_retention": 1}
    await put(world, type, name, organization, **document)  # type: ignore[arg-type]
    mine = await ended(world)
    world.advance(10)
    assert await retain(world) == 0
    assert await result_of(world, mine) == DONE.result


async def test_how_far_results_have_gone_is_noted_for_each_kind_and_end(world: World) -> None:
    await kind_says(world, result_retention=10)
    await put(world, "kind", "other", kind="other", result_retention=10)
    await world.worker(kinds=(KIND, "other"))
    first = [await ended(world, kind=kind) for kind in (KIND, "other", KIND)]
    partly = [await ended(world, PARTLY_DONE, kind=kind) for kind in (KIND, "other")]
    world.advance(5)
    late = await ended(world)
    world.advance(6)
    assert await retain(world, limit=2) == 5
    assert await retain(world) == 0
    assert [await result_of(world, each) for each in [*first, *partly]] == [None] * 5
    assert await result_of(world, late) == DONE.result
    world.advance(5)
    assert await retain(world) == 1
    assert await retain(world) == 0


async def test_what_is_noted_of_results_outlives_the_lanes_of_others(world: World) -> None:
    await kind_says(world, result_retention=10)
    await world.worker(kinds=(KIND, "aaa", "zzz"))
    for kind in ("aaa", KIND, "zzz"):
        await put(world, "kind", kind, kind=kind, result_retention=10)
    for kind in ("aaa", KIND, "zzz"):
        await ended(world, kind=kind)
    world.advance(11)
    assert await retain(world) == 3
    keep = Retention(10**17, {TaskState.SUCCEEDED: us(20)})
    await world.submit(kind=KIND, delay=10**6)
    await put(world, "kind", KIND, kind=KIND, result_retention=10, retention=10**9)
    for _ in range(3):
        world.advance(26 * HOUR)
        await world.ledger.retain(keep, 100)
    lanes = {row["lane"]: row["kind"] for row in world.snapshot()["lanes"]}
    assert KIND in lanes.values()
    assert "aaa" not in lanes.values()
    assert KIND in {lanes.get(row["lane"]) for row in world.snapshot()["results_removed"]}
    assert {row["lane"] for row in world.snapshot()["results_removed"]} <= lanes.keys()


async def test_an_old_end_is_not_kept_for_a_fresh_one_of_its_lane(world: World) -> None:
    old = await ended(world)
    world.advance(KEEP - 1)
    await world.worker()
    fresh = await ended(world)
    world.advance(2)
    await retain(world)
    assert [await kept(world, each) for each in (old, fresh)] == [False, True]
