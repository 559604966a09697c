"""Tasks by filter: who submitted them and when they ended; what runs again may wait its turn."""

import pytest

from conformance.making import FAILED, ORGANIZATION, World, us
from perdure.domain.states import TaskState
from perdure.store.ledger import Redrive
from perdure.store.views import TaskFilter

DEAD = (TaskState.DEAD_LETTERED,)


async def listed(world: World, where: TaskFilter, limit: int = 10) -> list[str]:
    """All pages of a list."""
    found: list[str] = []
    cursor: str | None = None
    while True:
        page = await world.views.tasks(ORGANIZATION, where, limit, cursor)
        found += [each.id for each in page.rows]
        cursor = page.cursor
        if cursor is None:
            return found


async def dead(world: World, **given: object) -> str:
    """The id of a dead letter."""
    lease = await world.lease(**given)
    await world.finish(lease, settlement=FAILED)
    return lease.hold.task_id


async def test_tasks_are_found_by_who_submitted_them(world: World) -> None:
    ours = [await world.submit(principal=name) for name in ("alice", "bob", "carol")]
    assert await listed(world, TaskFilter(submitters=("bob",))) == [ours[1]]
    assert await listed(world, TaskFilter(states=(TaskState.QUEUED,), submitters=("alice", "carol")), 1) == [
        ours[2],
        ours[0],
    ]
    assert await listed(world, TaskFilter(submitters=("nobody",))) == []


@pytest.mark.parametrize("limit", [1, 10])
async def test_tasks_are_found_by_when_they_ended(world: World, limit: int) -> None:
    start = await world.now_us()
    ids = []
    for _ in range(4):
        ids.append(await dead(world))
        world.advance(10)
    await world.submit()

    async def between(first: float | None, before: float | None, **given: object) -> list[str]:
        from_us, before_us = (None if each is None else start + us(each) for each in (first, before))
        where = TaskFilter(ended_from_us=from_us, ended_before_us=before_us, **given)  # type: ignore[arg-type]
        return await listed(world, where, limit)

    assert await between(10, 30, states=DEAD) == [ids[2], ids[1]]
    assert await between(10, None, states=DEAD) == [ids[3], ids[2], ids[1]]
    assert await between(None, 10, states=DEAD) == [ids[0]]
    assert await between(10, 30) == [ids[2], ids[1]]
    assert await between(40, 50, states=DEAD) == []
    assert await between(10, 30, states=(TaskState.QUEUED,)) == []


async def test_redriven_tasks_wait_their_turn_and_their_ttl_with_them(world: World) -> None:
    ids = [await dead(world, ttl=60) for _ in range(3)]
    answers = await world.ledger.redrive(
        [Redrive(ORGANIZATION, id, "bob", None, us(place * 2)) for place, id in enumerate(ids)]
    )
    assert answers == [TaskState.QUEUED, TaskState.PENDING, TaskState.PENDING]
    now = await world.now_us()
    tasks = [await world.look(id) for id in ids]
    assert [task.due_us for task in tasks] == [now, now + us(2), now + us(4)]
    assert [task.expires_us for task in tasks] == [now + us(60), now + us(62), now + us(64)]
    assert [lease.hold.task_id for lease in await world.claim(5)] == ids[:1]
    world.advance(2)
    assert [lease.hold.task_id for lease in await world.claim(5)] == ids[1:2]
    world.advance(2)
    assert [lease.hold.task_id for lease in await world.claim(5)] == ids[2:]
