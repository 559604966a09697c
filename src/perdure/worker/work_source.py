"""Where a worker gets its work: the engine beside it, or a gateway far away. Both meet this protocol."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from perdure.domain.attempt import Hold, Lease, Renewal, Report
from perdure.domain.outcome import Outcome
from perdure.engine.requests import NewTask
from perdure.errors import PerdureError
from perdure.store.job_ledger import Grown
from perdure.store.ledger import Control, ParentResult, Renewed, Reported, Settled, Taker, WorkerInfo, WorkerOrder
from perdure.store.wakeups import Subscription


class WorkSource(Protocol):
    """The verbs of a worker. Every method may raise one of `errors.Unavailable`: the worker waits and tries again."""

    async def register(self, worker: WorkerInfo) -> WorkerOrder:
        """Make the worker known; what operators ordered for this id is returned."""

    async def heartbeat(self, worker_id: str, capacity: int) -> WorkerOrder:
        """Say that the worker is there; what operators ordered is returned."""

    async def leave(self, worker_id: str) -> None:
        """Say that the worker is gone for good."""

    async def claim(self, worker_id: str, count: int, *, wait: float = 0.0) -> list[Lease]:
        """At most `count` leases. A lost answer costs nothing but a wait: call again and the same ones come back, the
        earlier claim whole, which may be more than this `count`.

        A source that is far away waits for work when there is none, at most `wait` seconds.
        """

    def stand_by(self, worker_id: str, count: int, taker: Taker) -> Callable[[], None]:
        """While the worker rests: let a claim of at most `count` travel with the next commit of this event loop that
        brings work, once. Returns what withdraws it. A source that commits nothing itself does nothing.
        """

    async def renew(self, renewals: Sequence[Renewal]) -> list[Renewed | None]:
        """Extend leases; `None` where the attempt is not live any more."""

    async def control(self, worker_id: str) -> list[Control]:
        """The cancels requested for what the worker holds."""

    async def inputs(self, hold: Hold) -> Mapping[str, ParentResult]:
        """How the parents of an attempt's task ended, by name."""

    async def report(self, reports: Sequence[Report]) -> list[Reported | PerdureError]:
        """Store progress, phases, parts, checkpoints and logs."""

    async def add_tasks(self, hold: Hold, tasks: Sequence[NewTask], ran_us: int = 0) -> Grown:
        """Add tasks to the job of an attempt whose handler began `ran_us` ago. The same again is harmless."""

    async def settle(self, outcomes: Sequence[tuple[Hold, Outcome]]) -> list[Settled]:
        """End attempts. Sending the same outcome again is harmless."""

    def subscribe(self) -> Subscription:
        """Hints of new work and of control."""
