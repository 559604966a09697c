"""The duty that queues what is due."""

from perdure.domain import limits
from perdure.store.ledger import Ledger, Swept
from perdure.store.wakeups import Topic


class Promote:
    """`pending`, `retrying` -> `queued` at their time. Claims do the same, so this serves whoever waits idle."""

    name = "promote"
    interval_us = 30 * limits.SECOND_US
    wakes_on = Topic.DUE
    rest_us = 50_000

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def run_once(self, now_us: int) -> Swept:
        """Promote at most one sweep of tasks."""
        return await self._ledger.promote(limits.SWEEP_MAX_TASKS)
