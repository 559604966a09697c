"""What must hold at the end of a run, when everything has healed and ended."""

from conformance import sqlite_rows
from conformance.histories import wrong_of_task
from perdure.domain.states import ENDED, GOOD_ENDS
from perdure.store.views import TaskFilter, TaskView, Views
from simulation.policies import WEIGHTS
from simulation.schedules import wrong_of_schedules
from simulation.world import World


async def wrong_at_the_end(world: World, views: Views) -> list[str]:
    """One line for each thing that is wrong."""
    found = [f"clients: {fact}" for fact in world.log_of_clients.contradictions]
    found += wrong_rows(world)
    tasks = {id: task for organization in WEIGHTS for id, task in (await _tasks(views, organization)).items()}
    found += _lost(world, tasks)
    found += await wrong_of_schedules(world, tasks)
    found += _keys(tasks)
    for id, task in tasks.items():
        found += [
            f"{id} ({task.state}, generation {task.generation}): {fact}" for fact in await _task(world, views, task)
        ]
    return found


def wrong_rows(world: World) -> list[str]:
    """One line for each fact that the rows do not agree on at this moment."""
    removed = any(known.removed for known in world.witness.tasks.values())
    # Keys outlive the tasks that operators purge.
    return [each for each in sqlite_rows.contradictions(world.path) if not (removed and "idempotency key" in each)]


async def _tasks(views: Views, organization: str) -> dict[str, TaskView]:
    found: dict[str, TaskView] = {}
    cursor: str | None = None
    while True:
        page = await views.tasks(organization, TaskFilter(), 1_000, cursor)
        found.update({each.id: each for each in page.rows})
        cursor = page.cursor
        if cursor is None:
            return found


def _lost(world: World, tasks: dict[str, TaskView]) -> list[str]:
    """Acknowledged tasks that are not there, and tasks that the witness saw otherwise."""
    found = []
    for id in world.log_of_clients.ids:
        known = world.witness.tasks.get(id)
        if id not in tasks and (known is None or not known.removed):
            found.append(f"task {id} was acknowledged and is not there")
    for id, known in world.witness.tasks.items():
        if id in tasks and tasks[id].state is not known.state:
            found.append(f"task {id} is {tasks[id].state}, last seen {known.state}")
    return found


def _keys(tasks: dict[str, TaskView]) -> list[str]:
    ids: dict[str, str] = {}
    found = []
    for id, task in tasks.items():
        if task.idempotency_key is not None and ids.setdefault(task.idempotency_key, id) != id:
            found.append(f"key {task.idempotency_key} has two tasks: {id}, {ids[task.idempotency_key]}")
    return found


async def _task(world: World, views: Views, task: TaskView) -> list[str]:
    wrong: list[str] = []
    if task.state not in ENDED:
        wrong.append("it has not ended")
    known = world.witness.tasks.get(task.id)
    if known is None:
        return [*wrong, "nobody has seen it begin"]
    if task.id in world.log_of_clients.told_cancelled and task.state != "cancelled":
        wrong.append("a client was told that it is cancelled")
    if task.losses > known.row.max_losses:
        wrong.append(f"{task.losses} losses of {known.row.max_losses}")
    if task.state in GOOD_ENDS:
        whole = await views.task(task.organization, task.id)
        stored = whole.result.data if whole is not None and whole.result is not None else None
        if stored != known.result:
            wrong.append(f"its result is {stored!r}, committed was {known.result!r}")
    events = await views.events(task.organization, task.id)
    attempts = await views.attempts(task.organization, task.id)
    failed = [each for each in attempts if each.state == "failed" and each.generation == task.generation]
    if len(failed) > known.row.max_attempts:
        wrong.append(f"{len(failed)} failed attempts of {known.row.max_attempts}")
    return wrong + wrong_of_task(task, events, attempts)
