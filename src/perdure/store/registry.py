"""The workers that a store knows: what they say of themselves, and what operators want of them."""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol


class WorkerInfo(NamedTuple):
    """What a worker says of itself when it registers."""

    id: str
    name: str
    host: str
    pid: int
    version: str
    build: str
    kinds: tuple[str, ...]
    queues: tuple[str, ...]
    organizations: tuple[str, ...]
    """Which it serves; empty for all that it is granted."""
    capabilities: tuple[str, ...]
    capacity: int
    """How many leases it may hold at once: its slots plus its prefetch."""


class WorkerOrder(StrEnum):
    """What operators want of a worker."""

    WORK = "work"
    PAUSE = "pause"
    """Hold what it has, claim nothing."""
    DRAIN = "drain"
    """Finish what it has, claim nothing, leave."""
    REVOKE = "revoke"
    """Stop; nothing it writes is taken."""


class WorkerRegistry(Protocol):
    """The verbs about workers. The rules of `ledger` hold here too."""

    async def register(self, worker: WorkerInfo) -> WorkerOrder:
        """Keep what a worker says of itself, in the place of what it said before; return what operators ordered it."""

    async def heartbeat(self, worker_id: str, capacity: int) -> WorkerOrder:
        """Note that a worker is there; return its order. One that is unknown or has left is told to `REVOKE` itself."""

    async def seen(self, worker_ids: Sequence[str]) -> list[WorkerOrder]:
        """As `heartbeat` of many workers, whose capacities stay; their orders, one per worker, in order. An id may be
        named more than once.
        """

    async def orders(self, worker_ids: Sequence[str]) -> list[WorkerOrder]:
        """What `seen` would return. Reads only."""

    async def leave(self, worker_id: str) -> None:
        """Note that a worker is gone for good. Leases that it still holds run out."""

    async def order(self, organization: str, worker_id: str, order: WorkerOrder, actor: str) -> None:
        """Order a worker that serves the organization. What a revoked one writes is refused. Raises `NotFound`."""
