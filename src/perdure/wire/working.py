"""Bodies of the worker protocol. Durations and instants are microseconds; every write of an attempt names its hold."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from perdure.domain import limits
from perdure.domain.states import TaskState
from perdure.wire import shapes
from perdure.wire.shapes import Id, Json

Us = Annotated[int, Meta(ge=0, le=2**62)]
WorkerCapacity = Annotated[int, Meta(ge=0, le=limits.WORKER_CAPACITY_MAX)]
OrderName = Literal["work", "pause", "drain", "revoke"]
EncodingName = Annotated[str, Meta(min_length=1, max_length=40)]


class Hold(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What every write of an attempt names. Without all of it, nothing is changed."""

    organization: str
    task_id: Id
    attempt_id: Id
    token: str


class Register(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What a worker says of itself. `capacity` is how many leases it may hold at once."""

    id: Id
    name: shapes.WorkerTitle
    host: shapes.WorkerTitle = "unknown"
    pid: Us = 0
    version: shapes.WorkerTitle = "unknown"
    build: shapes.WorkerBuild = ""
    kinds: list[shapes.KindName]
    queues: list[shapes.QueueName]
    organizations: list[str] = []
    """Which it serves; empty for all that it is granted."""
    capabilities: shapes.Capabilities = []
    capacity: WorkerCapacity


class Order(msgspec.Struct, kw_only=True, frozen=True):
    """What operators want of the worker."""

    order: OrderName


class Heartbeat(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The worker is there. An unknown worker is told to revoke itself; it may register again."""

    worker_id: Id
    capacity: WorkerCapacity


class Leave(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The worker is gone for good."""

    worker_id: Id


class ClaimWork(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """At most `count` leases; where there is no work, wait for some, at most `wait` seconds.

    `request_id` is new for each claim and secret (a random UUID). The same one again, with the same count, after a lost
    answer, gives the same attempts, from any gateway. A claim whose client went away while it waited leases nothing.

    A claim is a sign of life: while one waits, no heartbeat is needed. With `order`, what the worker knows to be
    ordered, it is answered as soon as something else is. One that says so and waits has to be new: repeat it without
    `wait`.
    """

    worker_id: Id
    count: Annotated[int, Meta(ge=1, le=limits.CLAIM_MAX_TASKS)]
    wait: shapes.Wait = 0.0
    request_id: Id
    order: OrderName | None = None


class Lease(msgspec.Struct, kw_only=True, frozen=True):
    """The right of one attempt to act. Durations count from the claim: take the moment before it was sent."""

    hold: Hold
    kind: str
    queue: str
    priority: int
    payload: Json
    payload_encoding: str = shapes.JSON
    attempt: int
    fence: int
    generation: int
    lease_us: int
    timeout_us: int | None = None
    deadline_us: int
    """Until the execution deadline."""
    start_within_us: int | None = None
    """Until the TTL, which gates the start."""
    job_id: str | None = None
    name: str | None = None
    parents: int = 0
    retry: str | None = None
    options: str | None = None
    initiator: str
    checkpoint: str | None = None
    max_attempts: int


class ClaimAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """The leases; none when no work came in time."""

    leases: list[Lease]
    waited_us: Us = 0
    """How long the claim waited for work before these were leased: their durations count from so much later."""
    order: OrderName | None = None
    """What operators want of the worker, where that is known here."""


class HintQuery(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Wait for a hint, at most `wait` seconds. `after` is the `cursor` of the last answer; without it, the answer comes
    at once. With `topic`, only such hints end the wait.
    """

    topic: Literal["ready", "control", "any"] = "any"
    after: Annotated[str, Meta(max_length=100)] | None = None
    wait: shapes.Wait = shapes.WAIT_MAX_SECONDS


class Hinted(msgspec.Struct, kw_only=True, frozen=True):
    """What may have changed since `after`: `ready`, there may be work; `control`, there may be a cancel or an order.

    Hints are no truth: with all of them lost, work is only found later.
    """

    topics: list[Literal["ready", "control"]]
    cursor: str


class Renewal(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Asks for another lease length. `started`: the handler has begun, `ran_us` ago; `delivered`: it was told of the
    cancel, `told_us` ago.
    """

    hold: Hold
    started: bool
    delivered: bool = False
    ran_us: Us = 0
    told_us: Us = 0


class RenewMany(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Leases to be renewed."""

    renewals: Annotated[list[Renewal], Meta(max_length=limits.RENEW_MAX_ITEMS)]


class Renewed(msgspec.Struct, kw_only=True, frozen=True):
    """The lease is good for `lease_us` more. `cancel_us`: a cancel is requested, so long remains to stop."""

    lease_us: int
    cancel_us: int | None = None


class RenewAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """One answer per renewal, in order; null where the attempt is not live any more: stop it."""

    renewed: list[Renewed | None]


class ControlQuery(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Whose cancels."""

    worker_id: Id


class TaskControl(msgspec.Struct, kw_only=True, frozen=True):
    """A cancel that the holder should know of; `cancel_us` remain to stop."""

    attempt_id: Id
    cancel_us: int


class Controls(msgspec.Struct, kw_only=True, frozen=True):
    """The cancels requested for what the worker holds."""

    controls: list[TaskControl]


class ParentInput(msgspec.Struct, kw_only=True, frozen=True):
    """How a parent ended."""

    state: TaskState
    result: Json = shapes.NULL
    result_encoding: str | UnsetType = UNSET
    """Left out where there is no result."""


class Inputs(msgspec.Struct, kw_only=True, frozen=True):
    """How the parents of a task ended, by name."""

    inputs: dict[str, ParentInput]


class ProgressSent(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Counters of a running task."""

    done: Us
    total: Us | None = None
    succeeded: Us | None = None
    failed: Us | None = None


class PartSent(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A piece of a result. `sequence` counts from 1 without gaps."""

    sequence: Annotated[int, Meta(ge=1, le=limits.PARTS_MAX)]
    key: Annotated[shapes.Key, Meta(min_length=1, max_length=limits.IDEMPOTENCY_KEY_MAX_BYTES)]
    named: bool
    """The key is unique within the task, else within the attempt."""
    sha256: Annotated[str, Meta(pattern="^[0-9a-f]{64}$", extra_json_schema={"format": "sha256"})]
    data: Json
    data_encoding: EncodingName = shapes.JSON
    final: bool = False


class LogLineSent(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A line that the handler logged, `ago_us` ago. `sequence` grows within the attempt: what is not greater than that
    of an earlier line is a repeat. `dropped`: so many lines just before it are not kept.
    """

    sequence: Annotated[int, Meta(ge=1, le=limits.LOG_LINES_MAX)]
    level: Literal["debug", "info", "warning", "error", "critical"]
    message: Annotated[str, Meta(max_length=limits.LOG_LINE_MAX_BYTES)]
    ago_us: Us = 0
    dropped: Us = 0


class Report(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """What a handler tells while it runs."""

    hold: Hold
    progress: ProgressSent | None = None
    phase: Literal["planning", "validating", "executing", "finalizing"] | None = None
    part: PartSent | None = None
    checkpoint: str | None = None
    """JSON text."""
    ran_us: Us = 0
    """How long ago the handler began."""
    logs: Annotated[list[LogLineSent], Meta(max_length=limits.LOG_LINES_MAX)] = []


class ReportMany(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Reports."""

    reports: Annotated[list[Report], Meta(max_length=limits.SETTLE_MAX_ITEMS)]


class ReportAnswered(msgspec.Struct, kw_only=True, frozen=True):
    """One report: taken, or refused with a `problem`."""

    replayed: bool = False
    cancel_us: int | None = None
    problem: dict[str, Any] | None = None


class ReportAnswer(msgspec.Struct, kw_only=True, frozen=True):
    """One answer per report, in order."""

    answers: list[ReportAnswered]


class Succeeded(
    msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, tag_field="outcome", tag="succeeded"
):
    """The handler returned `result`."""

    result: Json = shapes.NULL
    result_encoding: EncodingName = shapes.JSON
    summary: str | None = None


class SucceededPartly(
    msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, tag_field="outcome", tag="succeeded_partly"
):
    """The handler returned `result`; some of its items failed."""

    result: Json = shapes.NULL
    result_encoding: EncodingName = shapes.JSON
    summary: str | None = None


class FailureText(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """An error as data."""

    type: str
    message: str
    traceback: str = ""


class Failed(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, tag_field="outcome", tag="failed"):
    """The handler failed. `permanent` ends the task whatever its budget; `retry_after_us` replaces the backoff."""

    error: FailureText
    permanent: bool = False
    reason: Literal["error", "timeout", "bad_payload", "bad_result"] = "error"
    retry_after_us: Us | None = None


class Snoozed(
    msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, tag_field="outcome", tag="snoozed"
):
    """The handler wants to be called again after `delay_us`, at no cost."""

    delay_us: Us


class GaveUp(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, tag_field="outcome", tag="gave_up"):
    """The handler decided that the task is not to be done."""

    reason: str


class HandedBack(
    msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, tag_field="outcome", tag="handed_back"
):
    """The worker is shutting down; the handler did not end."""


class Stopped(
    msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, tag_field="outcome", tag="stopped"
):
    """The handler stopped because a cancel was requested."""

    killed: bool = False


class NotStarted(
    msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, tag_field="outcome", tag="not_started"
):
    """The TTL passed before the handler began."""


AnyOutcome = Succeeded | SucceededPartly | Failed | Snoozed | GaveUp | HandedBack | Stopped | NotStarted


class SettleOne(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """One attempt that ended, and how. Its handler began `ran_us` ago, and was told of a cancel `told_us` ago."""

    hold: Hold
    outcome: AnyOutcome
    ran_us: Us | None = None
    told_us: Us | None = None


class SettleMany(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Attempts that ended. The same again is harmless."""

    settlements: Annotated[list[SettleOne], Meta(max_length=limits.SETTLE_MAX_ITEMS)]


class SettleAnswered(msgspec.Struct, kw_only=True, frozen=True):
    """What became of one settle; with `lease_lost` nothing was changed, and `problem` names the attempt. `delay_us`: in
    how many microseconds the task is tried again, where this settle has decided that.
    """

    answer: Literal["applied", "replayed", "lease_lost"]
    state: TaskState | None = None
    delay_us: int | UnsetType = UNSET
    problem: dict[str, Any] | None = None


class SettleAnswers(msgspec.Struct, kw_only=True, frozen=True):
    """One answer per settlement, in order."""

    answers: list[SettleAnswered]


class HandBack(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Leases to be given back unused."""

    holds: Annotated[list[Hold], Meta(max_length=limits.SETTLE_MAX_ITEMS)]
