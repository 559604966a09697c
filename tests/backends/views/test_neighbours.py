"""What is read of one task or job has nothing of its neighbours, whether they came before or after."""

from typing import Any

from conformance.making import FAILED, ORGANIZATION, Family, World, part, retry_in
from perdure.domain.settlement import Settlement

GRAPH = {"a": [], "b": ["a"], "c": ["a"]}


async def live_through(world: World, kind: str) -> Family:
    """A job with a retried, a running and a waiting task, with parts, phases and a line of its own history."""
    worker = await world.worker(f"worker of {kind}", kinds=(kind,))
    family = await world.submit_job(GRAPH, tasks={name: {"kind": kind} for name in GRAPH}, principal=kind)
    lease = await world.claim_one(worker)
    await world.report(lease, part=part(1), phase="planning")
    await world.finish(lease, settlement=retry_in(0))
    await world.ledger.promote(10)
    lease = await world.claim_one(worker)
    await world.report(lease, part=part(1, final=True))
    await world.finish(lease)
    lease = await world.claim_one(worker)
    await world.start(lease)
    await world.cancel(lease.hold.task_id)
    await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", "enough")
    return family


async def all_that_is_read(world: World, family: Family) -> dict[str, Any]:
    """Every view of a job and of its tasks."""
    views = world.views
    seen: dict[str, Any] = {
        "job": await views.job(ORGANIZATION, family.id),
        "tasks": await views.job_tasks(ORGANIZATION, family.id),
        "history": await views.job_events(ORGANIZATION, family.id),
        "ended": await views.ended(ORGANIZATION, list(family.ids.values())),
    }
    for name, task_id in family.ids.items():
        seen[name] = (
            await views.task(ORGANIZATION, task_id),
            await views.attempts(ORGANIZATION, task_id),
            await views.events(ORGANIZATION, task_id),
            await views.parts(ORGANIZATION, task_id),
        )
    return seen


async def some_neighbours(world: World, kind: str) -> None:
    """Tasks and jobs in many states."""
    await world.submit()
    await world.finish(await world.claim_one())
    await world.submit(kind="other", delay=5)
    await world.submit()
    await world.finish(await world.claim_one(), settlement=FAILED)
    await world.submit()
    await world.finish(await world.claim_one(), settlement=Settlement.snoozed(10**9))
    await live_through(world, kind)


async def test_nothing_of_the_neighbours_is_seen(world: World) -> None:
    await some_neighbours(world, "before")
    family = await live_through(world, "own")
    seen = await all_that_is_read(world, family)
    (first, attempts, events, parts) = seen["a"]
    assert [each.attempt for each in attempts] == [1, 2]
    assert [each.type for each in events].count("leased") == 2
    assert len(parts) == 2
    assert first.id == family["a"]
    assert (seen["job"].id, seen["history"][0].actor) == (family.id, "own")
    assert [task.name for task in seen["tasks"]] == ["a", "b", "c"]
    await some_neighbours(world, "after")
    assert await all_that_is_read(world, family) == seen
