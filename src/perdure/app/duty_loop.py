"""Running the duties: the loop only waits and calls. Any number of processes may run one."""

import asyncio
import logging
from collections.abc import Callable, Sequence

from perdure.ambient import Clock
from perdure.domain.limits import SECOND_US
from perdure.engine.engine import Duty
from perdure.errors import Unavailable
from perdure.store.wakeups import Subscription

log = logging.getLogger("perdure.duties")

SHORTEST_WAIT_US = 20_000
"""Between two runs of a duty that a hint woke, so that a stream of hints costs a bounded share of the time."""
AFTER_ERROR_US = SECOND_US
"""Before a duty is tried again that could not reach the store."""


class DutyLoop:
    """Runs each duty when it is due: after its own interval, or earlier when it said so or a hint came."""

    def __init__(self, duties: Sequence[Duty], clock: Clock, subscribe: Callable[[], Subscription]) -> None:
        self._duties = duties
        self._clock = clock
        self._subscribe = subscribe
        self._hinted = {duty.name: asyncio.Event() for duty in duties}

    async def run(self) -> None:
        """Run all duties until cancelled."""
        subscription = self._subscribe()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_hints_on(subscription))
                for duty in self._duties:
                    group.create_task(self._run_one(duty), name=f"perdure-duty-{duty.name}")
        finally:
            subscription.close()

    async def _run_one(self, duty: Duty) -> None:
        while True:
            wait_us, more = await self._once(duty)
            if more:
                await asyncio.sleep(0)
                continue
            hinted = self._hinted[duty.name]
            started_us = self._clock.monotonic_us()
            try:
                async with asyncio.timeout(wait_us / SECOND_US):
                    await hinted.wait()
            except TimeoutError:
                continue
            too_early_us = SHORTEST_WAIT_US - (self._clock.monotonic_us() - started_us)
            if too_early_us > 0:
                await asyncio.sleep(min(too_early_us, wait_us) / SECOND_US)

    async def _once(self, duty: Duty) -> tuple[int, bool]:
        """One run: how long to wait then, and whether there is more to do at once.

        An error is logged, not raised: the other duties go on.
        """
        self._hinted[duty.name].clear()
        try:
            swept = await duty.run_once(self._clock.monotonic_us())
        except Unavailable as error:
            log.warning("duty %s could not reach the store: %s", duty.name, error)
            return AFTER_ERROR_US, False
        except Exception:
            log.exception("duty %s failed; it is tried again", duty.name)
            return AFTER_ERROR_US, False
        return duty.interval_us, swept.more

    async def _pass_hints_on(self, subscription: Subscription) -> None:
        while True:
            if await subscription.wait(60.0):
                for event in self._hinted.values():
                    event.set()
