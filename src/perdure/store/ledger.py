"""The protocol of the state that must not be lost: tasks, attempts, jobs and workers, and the verbs that move them.

Rules for every method:

- One call is one transaction. It is durable before it answers, except `claim`, `renew`, `heartbeat` and `seen`, which a
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
from perdure.domain.breaker import BreakerTurn
from perdure.domain.retention import Retention
from perdure.domain.settlement import AttemptFacts, Settlement
from perdure.domain.states import Reason, TaskState
from perdure.domain.task import Body, Job, Task
from perdure.domain.unique import SubmitOutcome
from perdure.errors import PerdureError
from perdure.store.breaker_ledger import BreakerLedger
from perdure.store.claims import ClaimRequest as ClaimRequest
from perdure.store.claims import StandingClaims
from perdure.store.claims import Taker as Taker
from perdure.store.job_ledger import JobLedger
from perdure.store.registry import WorkerInfo as WorkerInfo
from perdure.store.registry import WorkerOrder as WorkerOrder
from perdure.store.registry import WorkerRegistry
from perdure.store.specified import Specified


class Submitted(NamedTuple):
    """It exists. `replayed`: it did before, by the same key and request; `state` is `None` if it was removed since.

    `outcome` tells what a submit of a unique task has done; where that was not to make one, `id` is the other task's.
    """

    id: str
    state: TaskState | None
    replayed: bool
    outcome: SubmitOutcome = SubmitOutcome.CREATED

    def told(self) -> SubmitOutcome:
        """What a submitter learns. What an earlier sending of the same request has done is not known any more."""
        return SubmitOutcome.EXISTING if self.replayed else self.outcome


class JobSubmitted(NamedTuple):
    """The job exists. `task_ids` maps its tasks' names to ids: to none where it was replayed and is removed since."""

    id: str
    task_ids: dict[str, str]
    replayed: bool


class Renewed(NamedTuple):
    """The lease is good for `lease_us` from now. `cancel_us`: a cancel is requested, and so long is left to stop."""

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
    """`state`: the task's by it, `None` if its lease was lost; `delay_us`: until its next attempt, if that is by it."""

    answer: SettleAnswer
    state: TaskState | None
    turned: BreakerTurn | None = None
    """The breaker of its kind that has changed by it, and by those that were settled together with it."""
    delay_us: int | None = None


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
    delay_us: int = 0
    """It waits so long before it may be claimed; its TTL runs from then on."""
    options: str | None = None
    """Replaces the options, where another payload makes another unique key or other gates: as `Specified` has them."""


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
    """How many tasks were moved, when the next one is due (store time, if known), and whether there are more now."""

    moved: int
    next_us: int | None
    more: bool
    quiet: bool = False
    """Nothing will be there to be done within `LOOK_AHEAD_US` before something is announced."""
    turned: tuple[BreakerTurn, ...] = ()
    """Breakers that have changed by it."""
    again_in_us: int | None = None
    """After so long it is to be done again, whatever `next_us` tells: not all has been looked at."""


class ParentResult(NamedTuple):
    """How a parent ended; `result` only when it succeeded (partly)."""

    state: TaskState
    result: Body | None


class Ledger(WorkerRegistry, StandingClaims, JobLedger, BreakerLedger, Protocol):
    """The verbs, with those about workers. Each names the states that it moves tasks from; tasks in other states are
    refused or left alone.
    """

    # Submission

    async def submit(self, tasks: Sequence[Task]) -> list[Submitted | PerdureError]:
        """Store tasks without a job: `queued`, at the end of their lane, when due now; else `pending`.

        An idempotency key that (organization, principal) has used within `limits.IDEMPOTENCY_KEY_LIFE_US` answers with
        the task that it made: `replayed` when the request hash is the same, else `IdempotencyConflict`. Two items of
        one call are as two calls. The same task id again is a repeated call, and `replayed`.

        The key of a unique task is its own in the organization while no other holds it, by the rules of
        `domain.unique`; else it is answered with what came of that, or refused (`UniqueConflict`). No two calls ever
        find the same key free. A holder is replaced or debounced in this transaction, and only where the new task is
        stored or its payload taken.

        Refused are tasks beyond the depth of their queue or organization (`Overloaded`; it counts all that waits), and
        those whose TTL has passed on arrival (`Invalid`).
        """

    async def submit_jobs(self, jobs: Sequence[Job]) -> list[JobSubmitted | PerdureError]:
        """Store jobs, each whole or not at all; as `submit`, but tasks with parents are `pending`.

        One with a unique task whose key is held is refused (`UniqueConflict`, with the names of its tasks).
        """

    # Attempts

    async def claim(self, request: ClaimRequest) -> list[Lease]:
        """Lease waiting tasks to a worker: `queued` -> `leased`, at most one task for each of `request.leases`.

        Eligible are tasks whose kind, queue, organization and capabilities are the worker's, whose queue and
        organization are not paused, and whose TTL and deadline have not passed. Higher priority goes first; within a
        priority, what was handed back, lost or revoked, then the oldest place in line. A worker never holds more than
        its capacity; one that is paused, draining, revoked or unknown gets nothing. No two claims get the same task.

        Before it chooses, it promotes tasks that are due and ends those that are overdue, some of each, so that work
        is served where no duty runs.

        The fence becomes the greater of the task's last fence + 1 and the store's microseconds. The first claim of a
        generation sets the execution deadline. Attempt ids that an earlier call has used return the same leases.
        """

    async def renew(self, renewals: Sequence[Renewal]) -> list[Renewed | None]:
        """Extend live leases by their own length from now; `leased` -> `running` for those that have started.

        No lease goes beyond the execution deadline, nor beyond the cancel deadline while its task is `cancelling`.
        `None`, and nothing changed: the attempt is not live, its lease or one of these deadlines is over, the token is
        another, or its worker is revoked.

        How long ago a handler began and was told of a cancel is counted back from now, never to before the lease began
        or the cancel was requested. What was told first stays.
        """

    async def control(self, worker_id: str) -> list[Control]:
        """The cancels requested for what a worker holds. Reads only."""

    async def inputs(self, hold: Hold) -> dict[str, ParentResult]:
        """How the parents of an attempt's task ended. `LeaseLost`; `TooLarge` past `limits.INPUTS_MAX_BYTES` in all."""

    async def report(self, reports: Sequence[Report]) -> list[Reported | PerdureError]:
        """Store what live attempts tell: progress, phase, part, checkpoint, logs; `leased` -> `running`.

        Progress and checkpoint replace the earlier ones, phases are events. The parts of an attempt have the sequences
        1, 2, 3 and so on, and nothing follows a final one (`Invalid`). A key that is there with the same checksum is
        acknowledged (`replayed`), with another one refused (`Conflict`). A named part of an earlier attempt moves to
        the one that sends it again. Lines of logs are new where their sequence is greater than all before, and refused
        past `limits.LOG_MAX_BYTES` an attempt (`TooLarge`). An attempt that is not live gets `LeaseLost`; one whose
        task is `cancelling` gets `Conflict`, unless it reports nothing but logs.
        """

    async def facts(self, holds: Sequence[Hold]) -> list[AttemptFacts | None]:
        """What the end of each attempt is decided by; `None` where it is not its task's live one. Reads only."""

    async def receipt_known(self, hold: Hold) -> bool:
        """Whether an attempt has committed a receipt. Reads only."""

    async def settle(self, settlings: Sequence[Settling]) -> list[Settled]:
        """End attempts: `leased`, `running` -> the settlement's state; `cancelling` -> `cancelled`, whatever was sent.

        The end of the task, its result, the attempt's row, the counters, the job and the direct children are one
        transaction. A receipt of the attempt is its result, also while `cancelling`.

        Each is guarded by attempt id and `guard`. Where those fail, nothing changes: `replayed`, with the recorded
        state, if the attempt ended with the same digest before, else `lease_lost`. If its holder sent a result then,
        one `late_result` event an attempt is kept.

        A child whose trigger is met joins its lane in this transaction, or becomes `pending` until it is due, once
        only. One whose trigger can no longer be met is `cancelled` (`upstream_failed`, `trigger_unmet`); what hangs on
        it is left to `cascade`, through a durable frontier.
        """

    # Operators and clients

    async def cancel(self, cancellations: Sequence[Cancellation]) -> list[Cancelled]:
        """`pending`, `queued`, `retrying` -> `cancelled`; `leased`, `running` -> `cancelling`. The first is kept."""

    async def cancel_job(self, organization: str, job_id: str, actor: str, text: str | None) -> bool:
        """Note that a job shall stop; `cascade` cancels its open tasks. False when it had ended. Raises `NotFound`."""

    async def postpone(self, organization: str, task_id: str, run_at_us: int) -> bool:
        """Let a task wait until an instant: `queued`, `pending` without open parents -> `pending`. False otherwise."""

    async def redrive(self, redrives: Sequence[Redrive]) -> list[TaskState | PerdureError]:
        """Run tasks again: `failed`, `dead_lettered` -> `queued`, or `pending` while a parent is open.

        The task goes into its next generation, with fresh budgets, deadline and TTL; its fences go on and its history
        stays. Its job runs again, and descendants that were cancelled for it (`upstream_failed`, `trigger_unmet`) are
        revived: `cancelled` -> `pending`.

        A unique task takes its key again, or that of its new options. What is revived does so too.

        `NotFound`, `Conflict` (another state), `UniqueConflict` (another task holds the key), `Redacted` (the payload
        is gone and no new one is given).
        """

    async def specified(self, organization: str, task_ids: Sequence[str]) -> list[Specified | None]:
        """What bears on another payload of each task; `None` where there is no such task. Reads only."""

    async def discard(self, organization: str, task_ids: Sequence[str], actor: str) -> list[bool]:
        """Mark dead letters as seen and done with; they stay readable until retention. False where it is none."""

    async def purge(self, organization: str, task_ids: Sequence[str], actor: str) -> list[bool]:
        """Remove dead letters for good; who did stays known. False where it is none, or its job is still open."""

    async def purge_queue(self, organization: str, queue: str, actor: str, limit: int) -> Swept:
        """Cancel what waits in a queue, oldest first: `pending`, `queued`, `retrying` -> `cancelled` (`purged`)."""

    # Duties: at most `limit` tasks a call, any number of runners, each condition repeated in the write

    async def promote(self, limit: int) -> Swept:
        """Let tasks join their lanes that are due and wait for nothing else: `pending`, `retrying` -> `queued`."""

    async def expire(self, limit: int) -> Swept:
        """Waiting tasks past their TTL -> `expired`; past their deadline -> `failed`, `dead_lettered` (`deadline`)."""

    async def holding(self) -> bool:
        """Whether any attempt is live, or may be in a moment because a task is queued."""

    async def find_doubtful(self, limit: int) -> list[Doubtful]:
        """Attempts that a duty may have to end, each with the guard to settle it by. Reads only.

        Lease, execution deadline, timeout or cancel deadline are over, or the worker is revoked. None by their lease
        while losses are suspended.
        """

    async def suspend_losses(self, until_us: int) -> None:
        """Declare nothing lost before an instant of the store's time, whoever asks.

        It reaches no further than `limits.LEASE_MAX_US` from now. An earlier suspension is not shortened, unless it
        lies further ahead than that: then it was made on another scale of time.
        """

    async def losses_suspended_until(self) -> int:
        """The instant until which nothing is declared lost; 0 when there is none on this scale of time."""

    async def cascade(self, limit: int, grace_us: int = limits.CANCEL_GRACE_DEFAULT_US) -> Swept:
        """Go on from the frontier: settle children of ended tasks, and cancel open tasks of jobs that shall stop.

        Holders of the latter have `grace_us` to stop.
        """

    async def fail_unroutable(self, after_us: int, active_us: int, limit: int) -> Swept:
        """End what nobody can run: `queued` -> `failed` or `dead_lettered` (`unroutable`).

        That is so where for `after_us` some worker seen within `active_us` served the queue and organization, and none
        of them had the kind.
        """

    async def retain(self, retention: Retention, limit: int) -> Swept:
        """Remove what has been kept for as long as `retention` says, counted from its end.

        A task without a job goes with its attempts, result, parts, events and logs. The document of its kind may say
        otherwise of its own tasks: `retention` (seconds, or seconds by end state) and `result_retention` (seconds
        after which result, parts and receipts go while the task stays). A job goes whole, by its own end. Never an
        open task, a task of an open job, or a result that an open task still needs.

        What came of the instants of schedules goes by `retention.keep_us`, unless it made something that is open.
        Idempotency keys whose life is over go too, acts after `limits.ACTS_KEPT_US`, lanes that have long been empty,
        and workers that hold nothing and were not seen for `retention.keep_us`, nor for `limits.WORKER_ACTIVE_MAX_US`.
        """

    async def now_us(self) -> int:
        """The store's time: microseconds since 1970 UTC."""
