"""How the loop of a worker rests: until something may have changed, or until time has passed."""

import asyncio
import contextlib
from collections.abc import Callable

from perdure.ambient import Clock
from perdure.domain.limits import SECOND_US


class Rest:
    """An alarm that anything may ring; only the loop waits for it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung = asyncio.Event()
        self.ring = self._rung.set
        """Something may have changed."""
        self.look = self._rung.clear
        """The loop looks at everything now: what rings from here on is news."""

    async def until_rung(self, seconds: float | None) -> None:
        """Wait until something may have changed, at most `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._rung.wait()

    async def whatever(self, seconds: float, unless: Callable[[], bool]) -> None:
        """Wait `seconds`, whatever rings, unless something holds then."""
        until_us = self._clock.monotonic_us() + round(seconds * SECOND_US)
        while not unless():
            left_us = until_us - self._clock.monotonic_us()
            if left_us <= 0:
                return
            self.look()
            await self.until_rung(left_us / SECOND_US)
