"""Workers: they register, say that they are there, and leave; operators order them."""

from collections.abc import Sequence

from perdure.domain import limits
from perdure.engine.claim import Claim
from perdure.engine.kinds import Names
from perdure.engine.names import check_title
from perdure.engine.quantities import check_choice, check_count
from perdure.engine.requests import Principal
from perdure.errors import Invalid
from perdure.store.ledger import Ledger, WorkerInfo, WorkerOrder
from perdure.store.wakeups import Topic, Wakeups

LISTED_MAX = 10_000
"""How many kinds, queues or organizations a worker may list."""


class Workers:
    """The registry of workers."""

    def __init__(self, ledger: Ledger, wakeups: Wakeups, names: Names, claim: Claim) -> None:
        self._ledger = ledger
        self._wakeups = wakeups
        self._names = names
        self._claim = claim

    async def register(self, worker: WorkerInfo) -> WorkerOrder:
        """Make a worker known; what operators ordered for its id is returned. Raises `Invalid` with the field."""
        for field in ("id", "name", "host", "version"):
            check_title(getattr(worker, field), f"worker.{field}", limits.WORKER_TEXT_MAX_CHARS)
        if worker.build:
            check_title(worker.build, "worker.build", limits.WORKER_TEXT_MAX_CHARS)
        _check_list(worker.kinds, self._names.kind, "worker.kinds")
        _check_list(worker.queues, self._names.queue, "worker.queues")
        _check_list(worker.capabilities, self._names.capability, "worker.capabilities")
        check_count(worker.capacity, "worker.capacity", 0, limits.WORKER_CAPACITY_MAX)
        return await self._ledger.register(worker)

    async def heartbeat(self, worker_id: str, capacity: int) -> WorkerOrder:
        """Note that a worker is there; what operators ordered is returned."""
        check_count(capacity, "capacity", 0, limits.WORKER_CAPACITY_MAX)
        return await self._ledger.heartbeat(worker_id, capacity)

    async def seen(self, worker_ids: Sequence[str]) -> list[WorkerOrder]:
        """Note that many workers are there; what operators ordered each of them is returned."""
        return await self._ledger.seen(worker_ids)

    async def orders(self, worker_ids: Sequence[str]) -> list[WorkerOrder]:
        """What operators ordered many workers, without noting that they are there."""
        return await self._ledger.orders(worker_ids)

    async def leave(self, worker_id: str) -> None:
        """Note that a worker is gone for good."""
        await self._ledger.leave(worker_id)
        self._claim.forget(worker_id)

    async def order(self, worker_id: str, order: WorkerOrder, by: Principal) -> None:
        """Order a worker to work, pause, drain or stop. Raises `NotFound`, also for one of other organizations only."""
        wanted = check_choice(order, "order", tuple(WorkerOrder))
        await self._ledger.order(by.organization, worker_id, wanted, by.name)
        self._wakeups.announce(Topic.CONTROL | Topic.READY)


def _check_list(texts: Sequence[str], check: object, field: str) -> None:
    if len(texts) > LISTED_MAX:
        raise Invalid(f"{field} may list {LISTED_MAX:,} names at most", field=field)
    if callable(check):
        for each in texts:
            check(each, field)
