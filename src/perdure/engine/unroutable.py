"""The duty that ends what nobody can run."""

from perdure.domain import limits
from perdure.store.ledger import Ledger, Swept
from perdure.store.wakeups import Topic


class FailUnroutable:
    """Fails queued tasks whose kind no live worker has, though workers serve their queue and organization."""

    name = "unroutable"
    rest_us = limits.SECOND_US

    def __init__(self, ledger: Ledger, after_us: int, active_us: int) -> None:
        self._ledger = ledger
        self._after_us = after_us
        self._active_us = active_us
        self.interval_us = min(60 * limits.SECOND_US, max(limits.SECOND_US, after_us // 4))
        # With a short patience, new work is looked at when it comes instead of at the next round.
        self.wakes_on = Topic.READY if after_us < self.interval_us else Topic(0)

    async def run_once(self, now_us: int) -> Swept:
        """Fail at most one sweep of tasks."""
        return await self._ledger.fail_unroutable(self._after_us, self._active_us, limits.SWEEP_MAX_TASKS)
