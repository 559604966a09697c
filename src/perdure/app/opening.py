"""Opening late: nothing is opened before its first use, and once for each process and event loop.

A forked child inherits what its parent had open. It may neither use nor close that, so it is put aside, and the
child opens its own.
"""

import asyncio
from collections.abc import Awaitable, Callable

from perdure import ambient
from perdure.wiring import System


class Openings:
    """The systems that one app has open, by process and event loop."""

    def __init__(self, open_system: Callable[[], Awaitable[System]]) -> None:
        self._open_system = open_system
        self._open: dict[tuple[int, asyncio.AbstractEventLoop], asyncio.Task[System]] = {}
        self._inherited: list[asyncio.Task[System]] = []
        self._left_open: list[asyncio.Task[System]] = []

    def at_hand(self) -> System | None:
        """The system of this process and loop, if it is open already."""
        opening = self._open.get((ambient.process_id(), asyncio.get_running_loop()))
        if opening is None or not opening.done() or opening.cancelled() or opening.exception() is not None:
            return None
        return opening.result()

    async def system(self) -> System:
        """The system of this process and loop, opened if it is the first use."""
        at_hand = self.at_hand()
        if at_hand is not None:
            return at_hand
        loop = asyncio.get_running_loop()
        key = (ambient.process_id(), loop)
        opening = self._open.get(key)
        if opening is None:
            self._put_aside()
            opening = self._open.setdefault(key, loop.create_task(self._opened()))
        try:
            return await asyncio.shield(opening)
        except BaseException:
            if opening.done() and (opening.cancelled() or opening.exception() is not None):
                self._open.pop(key, None)
            raise

    async def _opened(self) -> System:
        while (left := _taken(self._left_open)) is not None:
            if left.done() and not left.cancelled() and left.exception() is None:
                await left.result().let_go()
        return await self._open_system()

    def _put_aside(self) -> None:
        """Forget what another process, or a loop that is gone, had opened."""
        here = ambient.process_id()
        for key in list(self._open):
            process, loop = key
            if process == here and not loop.is_closed():
                continue
            # Another thread with a loop of its own may be at this too.
            opening = self._open.pop(key, None)
            if opening is not None:
                (self._left_open if process == here else self._inherited).append(opening)

    async def close(self) -> None:
        """Close what this loop has open; a later use opens it again. What other loops have open is closed by them."""
        opening = self._open.pop((ambient.process_id(), asyncio.get_running_loop()), None)
        if opening is not None:
            system = await opening
            await system.close()


def _taken(openings: list[asyncio.Task[System]]) -> asyncio.Task[System] | None:
    try:
        return openings.pop()
    except IndexError:
        return None
