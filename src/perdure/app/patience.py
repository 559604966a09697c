"""Saying what is in the way of somebody who waits: a task that nobody can run is waited for in vain."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any, TypeVar

from perdure.domain.why import Obstacle, ObstacleSort
from perdure.errors import PerdureError, WaitTimedOut

T = TypeVar("T")

PATIENCE_SECONDS = 10.0
"""For so long nothing is said: a worker may be about to start."""

EXPLAIN_SECONDS = 0.3
"""For so long, at most, a wait that is over goes on for what its error says."""

_log = logging.getLogger("perdure.wait")

Why = Callable[[], Awaitable[tuple[str, Sequence[Obstacle]]]]
"""Asks what keeps one of those tasks that are waited for; tells its id too."""


class Patience:
    """Bears waits: after a while it logs, once, that no worker has what is waited for."""

    def __init__(self, seconds: float = PATIENCE_SECONDS) -> None:
        self.seconds = seconds

    async def bear(self, wait: Coroutine[Any, Any, T], why: Why) -> T:
        """What `wait` gives. Where it times out, the error says what keeps one of its tasks from running."""
        try:
            async with self._watched(why):
                return await wait
        except WaitTimedOut as error:
            if error.fields.get("timeout") == 0:
                raise
            obstacles = await _soon(why)
            because = "".join(f"; {_said(each)}" for each in obstacles[:1])
            raise WaitTimedOut(error.message + because, **error.fields) from None

    @contextlib.asynccontextmanager
    async def _watched(self, why: Why) -> AsyncIterator[None]:
        watching: list[asyncio.Task[None]] = []

        def begin() -> None:
            watching.append(asyncio.create_task(self._watch(why), name="perdure-patience"))

        timer = asyncio.get_running_loop().call_later(self.seconds, begin)
        try:
            yield
        finally:
            timer.cancel()
            for each in watching:
                each.cancel()

    async def _watch(self, why: Why) -> None:
        while True:
            task, obstacles = await _asked(why)
            for each in obstacles:
                if each.sort is ObstacleSort.NO_WORKER:
                    _log.warning(
                        "task %s is waited for, and %s: %s (`perdure worker MODULE:APP` starts one)",
                        task,
                        each.text,
                        each.frees,
                    )
                    return
            await asyncio.sleep(self.seconds)


def _said(obstacle: Obstacle) -> str:
    return f"{obstacle.text}: {obstacle.frees}" if obstacle.sort is ObstacleSort.NO_WORKER else obstacle.text


async def _soon(why: Why) -> Sequence[Obstacle]:
    """What is in the way, if that is told at once: who waits has set a limit."""
    try:
        async with asyncio.timeout(EXPLAIN_SECONDS):
            return (await _asked(why))[1]
    except TimeoutError:
        return ()


async def _asked(why: Why) -> tuple[str, Sequence[Obstacle]]:
    """As `why`; nothing where the store does not say: it is the wait that has to fail of that."""
    try:
        return await why()
    except PerdureError:
        return "", ()
