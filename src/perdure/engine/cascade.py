"""The duty that carries ends on to what hangs on them."""

from perdure.domain import limits
from perdure.store.ledger import Ledger, Swept
from perdure.store.wakeups import Topic


class Cascade:
    """Goes on from the durable frontier: descendants of ended tasks, and open tasks of jobs that shall stop."""

    name = "cascade"
    interval_us = 20 * limits.SECOND_US
    wakes_on = Topic.FOLLOW | Topic.CONTROL
    rest_us = 50_000

    def __init__(self, ledger: Ledger, cancel_grace_us: int) -> None:
        self._ledger = ledger
        self._cancel_grace_us = cancel_grace_us

    async def run_once(self, now_us: int) -> Swept:
        """Settle at most one sweep of descendants."""
        return await self._ledger.cascade(limits.CASCADE_MAX_TASKS, self._cancel_grace_us)
