"""Who did what, and when: kept for each act of an operator, also where it leaves nothing else."""

import json
from typing import Any

from conformance.making import FAILED, ORGANIZATION, World, us
from perdure.domain import limits
from perdure.domain.retention import Retention
from perdure.store.ledger import WorkerOrder

HOUR_US = us(3600)


def acts(world: World) -> list[tuple[str, str, str, Any]]:
    """Organization, type, actor and data of the events of no task and no job."""
    rows = [row for row in world.snapshot()["events"] if row["n"] is None and row["job"] is None]
    return [(row["organization"], row["type"], row["actor"], json.loads(row["data"])) for row in rows]


async def dead_letter(world: World) -> str:
    lease = await world.lease()
    await world.finish(lease, settlement=FAILED)
    return lease.hold.task_id


async def test_a_worker_tells_who_gave_its_order_and_when(world: World) -> None:
    (worker,) = await world.views.workers(ORGANIZATION, None)
    assert (worker.order, worker.ordered_by, worker.ordered_us) == ("work", None, None)
    for order, actor in ((WorkerOrder.PAUSE, "ann"), (WorkerOrder.WORK, "bob")):
        world.advance(5)
        await world.ledger.order(ORGANIZATION, "w", order, actor)
        (worker,) = await world.views.workers(ORGANIZATION, None)
        assert (worker.order, worker.ordered_by, worker.ordered_us) == (order, actor, await world.now_us())
    await world.worker("w")
    (worker,) = await world.views.workers(ORGANIZATION, None)
    assert worker.ordered_by == "bob"


async def test_who_purged_a_dead_letter_is_known_when_it_is_gone(world: World) -> None:
    first, second = await dead_letter(world), await dead_letter(world)
    asked = [first, world.ids.new(), second, first]
    await world.ledger.purge(ORGANIZATION, asked, "bob")
    assert sorted(acts(world), key=repr) == sorted(
        [(ORGANIZATION, "purged", "bob", {"task": each}) for each in (first, second)], key=repr
    )


async def test_who_discarded_a_dead_letter_is_told_by_its_history(world: World) -> None:
    task_id = await dead_letter(world)
    await world.ledger.discard(ORGANIZATION, [task_id], "bob")
    (event,) = [each for each in await world.views.events(ORGANIZATION, task_id) if each.type == "discarded"]
    assert event.actor == "bob"


async def test_who_deleted_a_document_is_known_and_a_delete_of_nothing_is_no_act(world: World) -> None:
    await world.definitions.put(ORGANIZATION, "queue", "q", "{}", "ann")
    for organization in ("other", ORGANIZATION, ORGANIZATION):
        await world.definitions.delete(organization, "queue", "q", "bob")
    assert acts(world) == [(ORGANIZATION, "definition_deleted", "bob", {"type": "queue", "name": "q"})]


async def test_acts_outlive_what_is_kept_of_tasks_and_go_when_they_have_been_kept_long_enough(world: World) -> None:
    await world.definitions.put(ORGANIZATION, "queue", "q", "{}", "ann")
    await world.definitions.delete(ORGANIZATION, "queue", "q", "bob")
    world.advance(limits.ACTS_KEPT_US / limits.SECOND_US)
    await world.ledger.retain(Retention(HOUR_US), 100)
    assert len(acts(world)) == 1
    world.advance(1)
    await world.ledger.retain(Retention(HOUR_US), 100)
    assert acts(world) == []
