"""What a worker says of its life in the log: the wording lives here. What goes well is not told."""

import logging
from collections.abc import Sequence

from perdure.domain.attempt import Lease
from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import Failed, HandedBack, Outcome
from perdure.domain.states import BAD_ENDS, ENDED, TaskState
from perdure.store.ledger import WorkerInfo
from perdure.worker.held import HeldAttempt

logger = logging.getLogger("perdure.worker")


class Journal:
    """Writes the log of one worker. `address` names the store or gateway that its work comes from."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._handed_back = 0

    def began(self, worker: WorkerInfo, concurrency: int) -> None:
        """It is registered and begins to claim."""
        logger.info(
            "worker %s (%s) works for %s: concurrency %d, queues %s, kinds %s",
            worker.id,
            worker.name,
            self._address or "a source without a name",
            concurrency,
            ", ".join(worker.queues),
            ", ".join(sorted(worker.kinds)) or "none",
        )

    def settled(
        self, held: HeldAttempt, outcome: Outcome, state: TaskState | None, delay_us: int | None = None
    ) -> None:
        """An attempt has ended as `outcome`, and its task is in `state` by it, to be tried again after `delay_us` where
        that is known. Called for all but successes.
        """
        if isinstance(outcome, HandedBack):
            self._handed_back += 1
        elif isinstance(outcome, Failed):
            self._failed(held, outcome, state, outcome.retry_after_us if delay_us is None else delay_us)

    def unknown_kinds(self, leases: Sequence[Lease]) -> None:
        """Leases of kinds without a handler here are handed back."""
        self._handed_back += len(leases)
        logger.error("leases of kinds without a handler are handed back: %s", {each.kind for each in leases})

    def ended(self, worker_id: str, ending: str) -> None:
        """It has left."""
        logger.info("worker %s: %s; %d handed back", worker_id, ending, self._handed_back)

    def _failed(self, held: HeldAttempt, failed: Failed, state: TaskState | None, delay_us: int | None) -> None:
        lease, error = held.lease, failed.error
        about = (lease.attempt, lease.max_attempts, lease.hold.task_id, lease.kind, error.type, error.message)
        if state in BAD_ENDS:
            logger.error("attempt %d of %d of task %s (%s) failed: %s: %s; the task is %s", *about, state)
        else:
            logger.warning("attempt %d of %d of task %s (%s) failed: %s: %s; %s", *about, _next(state, delay_us))


def _next(state: TaskState | None, delay_us: int | None) -> str:
    if state is None or state in ENDED:
        return f"the task is {state or 'not its own any more'}"
    if delay_us is not None:
        return f"it is tried again in {round(delay_us / SECOND_US, 2):g} s"
    return "it is tried again after its backoff"
