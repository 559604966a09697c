"""What has waited here for a slot too long is handed back: another worker may have a free one."""

import asyncio

from perdure.ambient import Clock
from perdure.domain.limits import SECOND_US
from perdure.worker.held import StopReason
from perdure.worker.lanes import Lanes
from perdure.worker.prefetch import WAIT_MAX_US, Prefetch


class StaleWatch:
    """Looks when the oldest of what waits will have waited too long."""

    def __init__(self, lanes: Lanes, prefetch: Prefetch, clock: Clock) -> None:
        self._lanes = lanes
        self._prefetch = prefetch
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Something may wait now."""
        if self._timer is None and self._lanes.waiting:
            delay_us = self._lanes.waiting[0].answered_us + WAIT_MAX_US - self._clock.monotonic_us()
            self._timer = asyncio.get_running_loop().call_later(delay_us / SECOND_US, self._hand_back)

    def _hand_back(self) -> None:
        self._timer = None
        stale_us = self._clock.monotonic_us() - WAIT_MAX_US
        for held in [each for each in self._lanes.waiting if each.answered_us <= stale_us]:
            self._lanes.stop(held, StopReason.DRAIN)
            self._prefetch.misjudged()
        self.watch()

    def close(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
