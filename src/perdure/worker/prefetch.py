"""How many leases may wait here for a slot: only as long as handlers are so short that nobody else would be sooner."""

from perdure.domain.limits import SECOND_US
from perdure.worker.worker_settings import WorkerSettings

SHORT_US = SECOND_US
"""Handlers that take less than this on the average are worth having the next ones at hand."""
WAIT_MAX_US = 5 * SECOND_US
"""What has waited here that long is handed back: another worker may have a free slot."""
WEIGHT = 0.1
"""Of the latest handler in the running average."""


class Prefetch:
    """Learns how long handlers take. Until it knows, nothing is fetched ahead."""

    def __init__(self, settings: WorkerSettings) -> None:
        self._settings = settings
        self._typical_us: float | None = None

    def note(self, duration_us: int) -> None:
        """A handler ended."""
        known = self._typical_us
        self._typical_us = duration_us if known is None else known + WEIGHT * (duration_us - known)

    def misjudged(self) -> None:
        """Something waited too long: learn anew."""
        self._typical_us = None

    def allowed(self, concurrency: int) -> int:
        """How many leases may wait beside `concurrency` running ones."""
        if self._typical_us is None or self._typical_us >= SHORT_US:
            return 0
        return self._settings.prefetch_for(concurrency)
