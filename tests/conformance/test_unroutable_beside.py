"""Who counts where nobody has a kind: workers of this queue and organization that are there, and no others."""

import json

import pytest

from conformance.making import KIND, ORGANIZATION, QUEUE, World, us
from conformance.test_duties import beat, unroutable
from conformance.test_neighbours import OTHER, put
from perdure.domain.states import TaskState

RARE = "rare"


async def marked(world: World, task_id: str) -> None:
    """Nobody has the kind of this task, which is known for longer than it is borne."""
    await unroutable(world)
    await beat(world, 90, "w")
    assert await world.state(task_id) is TaskState.DEAD_LETTERED


@pytest.mark.parametrize("gone", ["unseen", "revoked", "elsewhere"])
async def test_a_worker_that_does_not_count_makes_nothing_unroutable(world: World, gone: str) -> None:
    from perdure.store.ledger import WorkerOrder

    if gone == "elsewhere":
        await world.worker(organizations=(OTHER,))
    task_id = await world.submit(kind=RARE)
    if gone == "revoked":
        await world.ledger.order(ORGANIZATION, "w", WorkerOrder.REVOKE, "bob")
    for _ in range(10):
        world.advance(121 if gone == "unseen" else 30)
        if gone != "unseen":
            await world.ledger.heartbeat("w", 10)
        assert await unroutable(world) == 0
    assert await world.state(task_id) is TaskState.QUEUED


@pytest.mark.parametrize("able", [{"queues": ("side",)}, {"organizations": (OTHER,)}], ids=["queue", "organization"])
async def test_a_worker_that_has_the_kind_elsewhere_helps_nobody_here(world: World, able: dict[str, object]) -> None:
    await world.worker("v", kinds=(RARE,), **able)
    task_id = await world.submit(kind=RARE)
    await unroutable(world)
    await beat(world, 60, "w", "v")
    assert await world.state(task_id) is TaskState.DEAD_LETTERED


async def test_the_time_before_anybody_served_the_queue_does_not_count(world: World) -> None:
    await world.ledger.leave("w")
    task_id = await world.submit(kind=RARE)
    world.advance(1000)
    await world.worker("v")
    assert await unroutable(world) == 0
    assert await world.state(task_id) is TaskState.QUEUED
    await beat(world, 60, "v")
    assert await world.state(task_id) is TaskState.DEAD_LETTERED


async def test_a_task_that_came_late_has_its_own_time(world: World) -> None:
    early = await world.submit(kind=RARE)
    await unroutable(world)
    await beat(world, 50, "w")
    late = await world.submit(kind=RARE)
    await beat(world, 30, "w")
    assert [await world.state(each) for each in (early, late)] == [TaskState.DEAD_LETTERED, TaskState.QUEUED]
    await beat(world, 30, "w")
    assert await world.state(late) is TaskState.DEAD_LETTERED


async def test_what_is_held_and_what_waits_for_its_time_are_not_unroutable(world: World) -> None:
    await world.worker("v", kinds=(RARE,))
    held = await world.submit(kind=RARE, lease=3600)
    (lease,) = await world.claim(1, "v")
    later = await world.submit(kind=RARE, delay=3600)
    await world.ledger.leave("v")
    await marked(world, await world.submit(kind=RARE))
    assert [await world.state(each) for each in (held, later)] == [TaskState.LEASED, TaskState.PENDING]
    await world.finish(lease)


@pytest.mark.parametrize(
    ("type", "name", "organization"),
    [("queue", QUEUE, OTHER), ("queue", "side", ORGANIZATION), ("kind", QUEUE, ORGANIZATION)],
)
async def test_what_other_documents_say_of_dead_letters_is_nothing_to_this_queue(
    world: World, type: str, name: str, organization: str
) -> None:
    await put(world, type, name, organization, dead_letters=False)  # type: ignore[arg-type]
    await marked(world, await world.submit(kind=RARE))


async def test_a_queue_without_dead_letters_fails_what_nobody_can_run(world: World) -> None:
    await world.definitions.put(ORGANIZATION, "queue", QUEUE, json.dumps({"dead_letters": False}), "bob")
    task_id, known = await world.submit(kind=RARE), await world.submit(kind=KIND)
    await unroutable(world)
    await beat(world, 60, "w")
    assert [await world.state(each) for each in (task_id, known)] == [TaskState.FAILED, TaskState.QUEUED]
    assert (await world.ledger.fail_unroutable(us(60), us(120), 100)).moved == 0
