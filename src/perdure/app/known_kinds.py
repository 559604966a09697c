"""Making the app's kinds known to a store, so that a task is treated as its kind says before any worker has started."""

from collections.abc import Iterable
from typing import Any

from perdure.app.task import Task
from perdure.engine.requests import Principal
from perdure.wiring import System


async def declare_unknown(system: System, tasks: Iterable[Task[..., Any] | None], by: Principal) -> None:
    """Declare the kinds that the store does not know. What it knows comes from workers, and is left as it is."""
    known = system.known_kinds
    missing = {task.kind: task for task in tasks if task is not None and task.kind not in known}
    if not missing:
        return
    stored = {each.name for each in await system.engine.kinds(by)}
    new = [definition for kind in missing.keys() - stored for definition in missing[kind].handler.definitions()]
    await system.engine.declare(new, by)
    system.known_kinds.update(missing)
