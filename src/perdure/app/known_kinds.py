"""Making the app's kinds known to a store, so that a task is treated as its kind says before any worker has started."""

import difflib
import logging
from collections.abc import Iterable
from typing import Any

from perdure.app.task import Task
from perdure.engine.requests import Principal
from perdure.wiring import System

_log = logging.getLogger("perdure.app")


async def wonder_at_unknown(system: System, named: Iterable[str], by: Principal) -> None:
    """Warn, once for each, of kinds that are named without a handler here and that the store does not know either."""
    asked = {*named} - system.wondered_at - system.known_kinds
    if not asked:
        return
    system.wondered_at.update(asked)
    known = [each.name for each in await system.engine.kinds(by)]
    for kind in sorted(asked.difference(known)):
        near = difflib.get_close_matches(kind, known, 1)
        meant = f"; did you mean {near[0]!r}?" if near else ""
        _log.warning("a task of kind %r is submitted, which neither this app nor any worker has yet%s", kind, meant)


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
