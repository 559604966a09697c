"""Whether this process can take work: the store answers, the event loop turns, duties and polls succeed.

`/healthz` tells that the process answers at all; `/readyz` tells that it should be sent work.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping

from perdure.ambient import Clock
from perdure.domain.limits import SECOND_US

CHECK_SECONDS = 1.0
"""How often the store is asked."""
CHECK_TIMEOUT_SECONDS = 2.0
STALE_US = 4 * SECOND_US
"""How old the last good answer may be."""
GRACE_US = 30 * SECOND_US
"""How long after the last success of a duty or poll something is wrong."""


class Readiness:
    """Asks the store again and again, and remembers when it last answered. Belongs to one event loop."""

    def __init__(self, probe: Callable[[], Awaitable[object]], clock: Clock) -> None:
        self._probe = probe
        self._clock = clock
        self._answered_us: int | None = None
        self._fault = "it has not answered yet"
        self._successes: dict[str, int] = {}
        self._expected: dict[str, int] = {}
        self._closing = False
        self._checker: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to ask."""
        if self._checker is None:
            self._checker = asyncio.create_task(self._check_again_and_again(), name="perdure-gateway-readiness")

    async def stop(self) -> None:
        """Ask no more."""
        checker, self._checker = self._checker, None
        if checker is not None:
            checker.cancel()
            await asyncio.wait([checker])

    def close(self) -> None:
        """The process is about to end: be not ready from now on, so that no new work is sent."""
        self._closing = True

    def expect(self, what: str) -> None:
        """`what` (duties, worker) has to succeed again and again from now on."""
        self._expected[what] = self._clock.monotonic_us()

    def succeeded(self, what: str) -> None:
        """`what` has succeeded just now."""
        self._successes[what] = self._clock.monotonic_us()

    def checks(self) -> Mapping[str, str]:
        """Each condition: `ok`, or what is wrong."""
        now_us = self._clock.monotonic_us()
        found = {"store": self._store(now_us)}
        for what, since_us in self._expected.items():
            last_us = max(since_us, self._successes.get(what, since_us))
            late = now_us - last_us > GRACE_US
            found[what] = f"no success for {(now_us - last_us) // SECOND_US} s" if late else "ok"
        if self._closing:
            found["process"] = "is shutting down"
        return found

    @property
    def ready(self) -> bool:
        """Whether all conditions hold."""
        return all(each == "ok" for each in self.checks().values())

    def _store(self, now_us: int) -> str:
        if self._answered_us is None:
            return self._fault
        if self._fault:
            return self._fault
        return "ok" if now_us - self._answered_us <= STALE_US else "it has not answered for a while"

    async def _check_again_and_again(self) -> None:
        while True:
            with contextlib.suppress(Exception):
                await self._check()
            await asyncio.sleep(CHECK_SECONDS)

    async def _check(self) -> None:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT_SECONDS):
                await self._probe()
        except TimeoutError:
            self._fault = f"it did not answer within {CHECK_TIMEOUT_SECONDS:g} s"
        except Exception as error:
            self._fault = str(getattr(error, "code", "it failed"))
        else:
            self._fault, self._answered_us = "", self._clock.monotonic_us()
