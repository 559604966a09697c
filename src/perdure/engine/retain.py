"""The duty that removes what has been kept long enough."""

from perdure.domain import limits
from perdure.domain.retention import Retention
from perdure.store.ledger import Ledger, Swept
from perdure.store.wakeups import Topic


class Retain:
    """Removes old ends in bounded batches, one after the other while there are more, so that the store stays level."""

    name = "retain"
    wakes_on = Topic(0)
    rest_us = 20_000

    def __init__(self, ledger: Ledger, retention: Retention) -> None:
        self._ledger = ledger
        self._retention = retention
        shortest_us = min((retention.keep_us, *retention.by_state.values()))
        self.interval_us = min(300 * limits.SECOND_US, max(limits.SECOND_US, shortest_us // 4))

    async def run_once(self, now_us: int) -> Swept:
        """Remove at most one batch."""
        return await self._ledger.retain(self._retention, limits.RETAIN_MAX_TASKS)
