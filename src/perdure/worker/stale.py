"""What has waited here for a slot too long is handed back: another worker may have a free one."""

import asyncio

from perdure.ambient import Clock
from perdure.domain.limits import SECOND_US
from perdure.worker.held import StopReason
from perdure.worker.lanes import Lanes
from perdure.worker.prefetch import Prefetch


class StaleWatch:
    """Looks when the first of what waits will have waited too long."""

    def __init__(self, lanes: Lanes, prefetch: Prefetch, clock: Clock) -> None:
        self._lanes = lanes
        self._prefetch = prefetch
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None
        self._at_us = 0

    def watch(self) -> None:
        """Something may wait now."""
        at_us = self._prefetch.stale_at_us(self._lanes.waiting, self._places())
        if at_us is None or (self._timer is not None and self._at_us <= at_us):
            return
        self.close()
        self._at_us = at_us
        delay_us = at_us - self._clock.monotonic_us()
        self._timer = asyncio.get_running_loop().call_later(delay_us / SECOND_US, self._hand_back)

    def _hand_back(self) -> None:
        self._timer = None
        for held in self._prefetch.stale(self._lanes.waiting, self._places(), self._clock.monotonic_us()):
            self._lanes.stop(held, StopReason.DRAIN)
        self.watch()

    def _places(self) -> int:
        return self._prefetch.places(self._lanes.concurrency, self._lanes.active)

    def close(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
