"""The protocol of the state that must not be lost: tasks, attempts, jobs and workers, and the verbs that move them.

Rules for every method:

- One call is one transaction. It is durable before it answers, except `claim`, `renew` and `heartbeat`, which a
  power loss may undo (fences grow all the same, because they come from the store's clock).
- Items in, one result per item out, in the same order. A refused item changes nothing and does not touch another's
  outcome.
- Every id in a write was chosen by the caller, so that an unknown outcome is resolved by sending the same call again.
- Time is the store's: taken once inside each transaction. Callers give durations, and instants only where a user did.
- Moves are those of `domain.transitions`; the source state is repeated in the statement that writes.
- Rows are locked in ascending order of task, then job.

A store that cannot be reached, locked or written raises one of `errors.Unavailable`; then nothing of the call was
acknowledged, though all of it may have been committed.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple, Protocol

from perdure.domain import limits
from perdure.domain.attempt import Hold, Lease, Renewal, Report
from perdure.domain.retention import Retention
from perdure.domain.settlement import AttemptFacts, Settlement
from perdure.domain.states import Reason, TaskState
from perdure.domain.task import Body, Job, Task
from perdure.errors import PerdureError


class Submitted(NamedTuple):
    """The task exists. `replayed`: it existed before, under the same idempotency key and request."""

    id: str
    state: TaskState
    replayed: bool


class JobSubmitted(NamedTuple):
    """The job exists. `task_ids` maps its tasks' names to ids."""

    id: str
    task_ids: dict[str, str]
    replayed: bool


class ClaimRequest(NamedTuple):
    """What a worker may have now. `leases` are the ids and tokens for the attempts to be made: no more than that are
    claimed.
    """

    worker_id: str
    leases: Sequence[tuple[str, str]]
    """(attempt id, token), chosen by the caller."""


class Renewed(NamedTuple):
    """The lease is good for another `lease_us` from the store's now. `cancel_us`: a cancel is requested, that long
    remains to stop.
    """

    lease_us: int
    cancel_us: int | None


class Reported(NamedTuple):
    """The report was taken. `replayed`: the part was there already. `cancel_us` as in `Renewed`."""

    replayed: bool
    cancel_us: int | None


class Guard(StrEnum):
    """The condition that a settle repeats in its write, on top of the attempt's id and the source state."""

    HOLDER = "holder"
    """The token matches and the lease has not run out."""
    LEASE_OVER = "lease_over"
    """The lease has run out."""
    DEADLINE_OVER = "deadline_over"
    """The execution deadline has passed."""
    TIMEOUT_OVER = "timeout_over"
    """The handler's timeout and `limits.TIMEOUT_GRACE_US` have passed since it began."""
    CANCEL_OVER = "cancel_over"
    """The task is cancelling and its cancel deadline has passed."""
    WORKER_REVOKED = "worker_revoked"
    """The attempt's worker is revoked."""


class Settling(NamedTuple):
    """One attempt to end. `digest` (up to 32 characters) names the settlement: the same one again is a repeat."""

    hold: Hold
    """The token is empty unless `guard` is `HOLDER`."""
    guard: Guard
    settlement: Settlement
    digest: str
    ran_us: int | None = None
    """How long ago the handler began, as its holder says: when it started, unless that was told before."""
    told_us: int | None = None
    """How long ago the handler was told of a cancel, unless that was told before."""


class SettleAnswer(StrEnum):
    """What became of a settle."""

    APPLIED = "applied"
    REPLAYED = "replayed"
    LEASE_LOST = "lease_lost"


class Settled(NamedTuple):
    """`state` is the task's state by this settlement; `None` when the lease was lost."""

    answer: SettleAnswer
    state: TaskState | None


class Cancellation(NamedTuple):
    """A request that a task shall not (go on to) run. The first one is kept."""

    organization: str
    task_id: str
    actor: str
    reason: Reason
    text: str | None
    """Told to everybody who sees the task."""
    note: str | None
    """For its author and administrators only."""
    grace_us: int
    """How long a holder has to stop."""


class CancelAnswer(StrEnum):
    """What became of a cancel."""

    CANCELLED = "cancelled"
    CANCELLING = "cancelling"
    ALREADY = "already"
    """It was cancelled, or is being cancelled, by an earlier request."""
    ENDED = "ended"
    NOT_FOUND = "not_found"


class Cancelled(NamedTuple):
    """`state` is the task's state after the request; `None` when there is no such task."""

    answer: CancelAnswer
    state: TaskState | None
    reason: Reason | None


class Redrive(NamedTuple):
    """A failed or dead-lettered task to be run again as its next generation."""

    organization: str
    task_id: str
    actor: str
    payload: Body | None = None
    """Replaces the payload; needed when it was redacted."""


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


class Control(NamedTuple):
    """A cancel that a holder should know of."""

    attempt_id: str
    cancel_us: int


class Doubtful(NamedTuple):
    """An attempt that may have to be ended by a duty, with the guard to repeat and the facts to decide by."""

    hold: Hold
    guard: Guard
    facts: AttemptFacts
    retry: str | None


class Swept(NamedTuple):
    """`moved` tasks were moved; the next one is due at `next_us` by the store's clock, if any is known. `more`: call
    again.
    """

    moved: int
    next_us: int | None
    more: bool


class ParentResult(NamedTuple):
    """How a parent ended; `result` only when it succeeded (partly)."""

    state: TaskState
    result: Body | None


class Ledger(Protocol):
    """The verbs. Sources name the states from which each one moves; everything else is refused or left alone."""

    # Submission

    async def submit(self, tasks: Sequence[Task]) -> list[Submitted | PerdureError]:
        """Store tasks that have no job.

        A task is `queued` when it is due and its queue's line is joined in this transaction, `pending` when it is due
        later. An idempotency key (organization, principal, key) that is known answers the first task: `replayed` when
        the request hash is the same, `IdempotencyConflict` when not; two items of one call race like two calls.
        `Overloaded` when the queue or organization would exceed its depth. A TTL that has passed on arrival is refused
        with `Invalid`.
        """

    async def submit_jobs(self, jobs: Sequence[Job]) -> list[JobSubmitted | PerdureError]:
        """Store jobs: each with all its tasks and edges, or not at all. Tasks without parents start as in `submit`, the
        others `pending`.
        """

    # Workers

    async def register(self, worker: WorkerInfo) -> WorkerOrder:
        """Store or replace a worker's account of itself; what operators ordered for this id is kept and returned."""

    async def heartbeat(self, worker_id: str, capacity: int) -> WorkerOrder:
        """Note that the worker is there. An unknown worker is told to `REVOKE` itself (and may register again)."""

    async def leave(self, worker_id: str) -> None:
        """Note that the worker is gone for good. Leases that it still holds run out."""

    async def order(self, worker_id: str, order: WorkerOrder, actor: str) -> None:
        """Store an operator's order. Raises `NotFound`. A revoked worker's attempts are ended by the duty that ends
        lost ones.
        """

    # Attempts

    async def claim(self, request: ClaimRequest) -> list[Lease]:
        """Lease waiting tasks to a worker: `queued` -> `leased`.

        Eligible is a task whose kind, queue, organization and capabilities the worker has, in a queue and organization
        that are not paused, within TTL and deadline. Order: priority first (9 before 0), then age (`seq`); what was
        handed back, lost or revoked goes before what was never leased. No two claims get the same task. The worker's
        leases never exceed its capacity. A paused, draining, revoked or unknown worker gets nothing. Tasks that are due
        are promoted first, tasks whose TTL has passed are expired (both bounded), so that no duty is needed for
        service.

        The fence becomes the greater of the last fence + 1 and the store's microseconds. The first claim of a
        generation sets the execution deadline. The same attempt ids again (a repeated call) return the same leases.
        """

    async def renew(self, renewals: Sequence[Renewal]) -> list[Renewed | None]:
        """Extend live leases by their length, never past the deadline's end; `leased` -> `running` when started.

        `None`: the attempt is not live (ended, run out, another's, its worker revoked). While `cancelling`, the lease
        is extended no further than the cancel deadline.
        """

    async def control(self, worker_id: str) -> list[Control]:
        """The cancels requested for what the worker holds. Reads only."""

    async def inputs(self, hold: Hold) -> dict[str, ParentResult]:
        """How the parents of a live attempt's task ended, by name. Raises `LeaseLost`, and `TooLarge` past
        `limits.INPUTS_MAX_BYTES`.
        """

    async def report(self, reports: Sequence[Report]) -> list[Reported | PerdureError]:
        """Store progress, phase, parts and checkpoints of live attempts; `leased` -> `running`. Refused while
        `cancelling`.

        Parts: sequences are contiguous from 1 within the attempt, nothing follows a final one, the same key and sha256
        is acknowledged again (`replayed`), the same key with another sha256 is a `Conflict`. A stale attempt gets
        `LeaseLost`.
        """

    async def facts(self, holds: Sequence[Hold]) -> list[AttemptFacts | None]:
        """What the end of each live attempt is decided by; `None` when the attempt is not its task's live one. Reads
        only.
        """

    async def receipt_known(self, hold: Hold) -> bool:
        """Whether the attempt has committed a receipt. Reads only."""

    async def settle(self, settlings: Sequence[Settling]) -> list[Settled]:
        """End attempts. The settlement, its result, the attempt's row, the counters, the job and the direct children
        are one transaction.

        Guarded by attempt id, guard and source state (`leased`, `running`; `cancelling` accepts only what the table
        allows: any settle of its holder then ends it `cancelled`, or by its receipt succeeded). Where the guard fails:
        `replayed` with the recorded state if this attempt ended with the same digest, else `lease_lost` (and a bounded
        `late_result` event if the holder sent a result). A success with a gap in its parts, or without its final one,
        is stored as a failure: the engine sees to it before.

        Children: a child becomes `queued` (or `pending` until due) in this transaction when its trigger is met, once
        only; it is cancelled (`upstream_failed`, `trigger_unmet`) when it can no longer be met. Deeper levels wait in a
        durable frontier for `cascade`.
        """

    # Operators and clients

    async def cancel(self, cancellations: Sequence[Cancellation]) -> list[Cancelled]:
        """`pending`, `queued`, `retrying` -> `cancelled`; `leased`, `running` -> `cancelling` with a time to stop."""

    async def cancel_job(self, organization: str, job_id: str, actor: str, text: str | None) -> bool:
        """Note that a job shall stop; `cascade` cancels its open tasks. False when it had ended. Raises `NotFound`.
        Idempotent.
        """

    async def postpone(self, organization: str, task_id: str, run_at_us: int) -> bool:
        """`queued`, `pending` (by time) -> `pending` until then. False when the task is in no such state."""

    async def redrive(self, redrives: Sequence[Redrive]) -> list[TaskState | PerdureError]:
        """`failed`, `dead_lettered` -> `queued` (or `pending` while a parent is open), generation + 1, budgets,
        deadline and TTL fresh.

        The earlier end stays in the history. Its job runs again, and descendants that were cancelled for it
        (`upstream_failed`, `trigger_unmet`) are revived to `pending`. `NotFound`, `Conflict` (another state),
        `Redacted`.
        """

    async def discard(self, organization: str, task_ids: Sequence[str], actor: str) -> list[bool]:
        """Mark dead letters as seen and done with; they stay readable until retention. False where it is none."""

    async def purge(self, organization: str, task_ids: Sequence[str], actor: str) -> list[bool]:
        """Remove dead letters for good. False where it is none, or its job is still open."""

    async def purge_queue(self, organization: str, queue: str, actor: str, limit: int) -> Swept:
        """Cancel what waits in a queue (`pending`, `queued`, `retrying`; reason `purged`), oldest first, at most
        `limit`.
        """

    # Duties: bounded, any number of runners, each repeats its condition in its write

    async def promote(self, limit: int) -> Swept:
        """`pending`, `retrying` -> `queued` for what is due and waits for nothing."""

    async def expire(self, limit: int) -> Swept:
        """Waiting tasks past their TTL -> `expired`; past their execution deadline -> `failed` or `dead_lettered`
        (`deadline`).
        """

    async def find_doubtful(self, limit: int) -> list[Doubtful]:
        """Attempts whose lease, deadline, timeout or cancel deadline is over, or whose worker is revoked. Reads only;
        `settle` ends them.
        """

    async def suspend_losses(self, until_us: int) -> None:
        """Declare nothing lost before `until_us` (store time), for any process. An earlier suspension is never
        shortened.
        """

    async def losses_suspended_until(self) -> int:
        """The instant (store time) until which no lease is declared lost; 0 when there is none."""

    async def cascade(self, limit: int, grace_us: int = limits.CANCEL_GRACE_DEFAULT_US) -> Swept:
        """Go on from the frontier: settle children of ended tasks, cancel open tasks of stopping jobs. Holders of the
        latter have `grace_us` to stop.
        """

    async def fail_unroutable(self, after_us: int, active_us: int, limit: int) -> Swept:
        """`queued` -> `failed` or `dead_lettered` (`unroutable`) where for `after_us` some worker seen within
        `active_us` served the queue and organization and none of them had the kind.
        """

    async def retain(self, retention: Retention, limit: int) -> Swept:
        """Remove what has been kept for as long as `retention` says, counted from its end; at most `limit` tasks.

        A task without a job goes with its attempts, result, parts and events. The document of its kind may say
        otherwise of its own tasks: `retention` (seconds, or seconds by end state) and `result_retention` (seconds after
        which result, parts and receipts go while the task stays). A job goes whole, by its own end. Never an open task,
        a task of an open job, or a result that an open task still needs.

        Idempotency keys whose life is over go too, and workers that hold nothing and were not seen for
        `retention.keep_us`.
        """

    async def now_us(self) -> int:
        """The store's time: microseconds since 1970 UTC."""
