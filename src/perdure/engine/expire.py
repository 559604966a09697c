"""The duty that ends what waited too long."""

from perdure.domain import limits
from perdure.store.ledger import Ledger, Swept
from perdure.store.wakeups import Topic


class Expire:
    """Waiting tasks past their TTL or execution deadline end, in paused queues too, where nothing is claimed."""

    name = "expire"
    interval_us = 20 * limits.SECOND_US
    wakes_on = Topic(0)
    rest_us = 50_000

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def run_once(self, now_us: int) -> Swept:
        """End at most one sweep of tasks."""
        return await self._ledger.expire(limits.SWEEP_MAX_TASKS)
