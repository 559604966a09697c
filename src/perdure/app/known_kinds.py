"""Making the app's kinds known to a store, so that a task is treated as its kind says before any worker has started."""

import asyncio
import contextlib
import logging
from collections.abc import Iterable
from typing import Any

from perdure.app.task import Task
from perdure.domain.likeness import did_you_mean
from perdure.engine.requests import Principal
from perdure.errors import PerdureError
from perdure.wiring import System

WONDER_SECONDS = 0.5
"""For so long a submit is held up, at most, for the sake of a warning."""

_log = logging.getLogger("perdure.app")


async def wonder_at_unknown(system: System, named: Iterable[str], by: Principal) -> None:
    """Warn, once for each, of kinds that are named without a handler here and that the store does not know either.

    Nothing is said where the store does not answer soon, or refuses to: what is submitted is not to fail of that.
    """
    asked = {*named} - system.wondered_at - system.known_kinds
    if not asked:
        return
    system.wondered_at.update(asked)
    with contextlib.suppress(PerdureError, TimeoutError):
        async with asyncio.timeout(WONDER_SECONDS):
            known = [each.name for each in await system.engine.kinds(by)]
        for kind in sorted(asked.difference(known)):
            meant = did_you_mean(kind, known)
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
