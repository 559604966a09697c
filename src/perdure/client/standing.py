"""How a worker stands with its gateway: whether a claim waits there, and what the worker was ordered last."""

import asyncio
import contextlib
from collections.abc import Iterator

from perdure.store.ledger import WorkerOrder

HEARD_SECONDS = 1.0
"""So long after it came, the answer to a claim is as good as that to a heartbeat."""


class Standing:
    """Of one worker. Claims and heartbeats may run in event loops of two threads."""

    __slots__ = ("_capacity", "_claims", "_heard", "order")

    def __init__(self) -> None:
        self.order: WorkerOrder | None = None
        """What the worker was ordered last, as far as it was told."""
        self._capacity: int | None = None
        self._claims = 0
        self._heard = 0.0

    def hear(self, order: WorkerOrder, capacity: int | None = None) -> None:
        """The gateway told an order, in answer to a request that gave the worker's capacity, or did not."""
        self.order = order
        self._heard = asyncio.get_running_loop().time()
        if capacity is not None:
            self._capacity = capacity

    def known(self, capacity: int) -> WorkerOrder | None:
        """The worker's order, if the gateway would have told another one, and knows that the worker is there with this
        capacity; `None` when a heartbeat has to say and ask that.
        """
        fresh = self._claims or asyncio.get_running_loop().time() - self._heard < HEARD_SECONDS
        return self.order if fresh and capacity == self._capacity else None

    @contextlib.contextmanager
    def claiming(self, wait: float) -> Iterator[None]:
        """A claim is under way for the time of the block, and waits there for so many seconds."""
        waits = 1 if wait > 0 else 0
        self._claims += waits
        try:
            yield
        finally:
            self._claims -= waits
