"""Bodies about tasks."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from perdure.domain import limits
from perdure.domain.retry import Retry
from perdure.domain.states import AttemptState, Reason, TaskState
from perdure.domain.task import OnLoss
from perdure.domain.unique import SubmitOutcome, Unique
from perdure.domain.why import ObstacleSort
from perdure.engine.requests import TaskRequest
from perdure.store.sort import Sort
from perdure.wire import shapes
from perdure.wire.shapes import Id, Json


class SubmitTask(TaskRequest, kw_only=True, forbid_unknown_fields=True):
    """One task to be. Durations are seconds; what is not said is as the kind says, then as the system does."""

    kind: shapes.KindName
    payload: Json = shapes.NULL
    """Any JSON; the argument of the handler."""
    queue: shapes.QueueName | None = None
    priority: shapes.Priority | None = None
    """9 before 0."""
    delay: shapes.Delay | None = None
    """Not before so many seconds from now."""
    run_at: datetime | None = None
    """Not before this instant; excludes `delay`."""
    max_attempts: shapes.Attempts | None = None
    retry: Retry | None = None
    timeout: shapes.Timeout | None = None
    """Of one attempt."""
    ttl: shapes.Ttl | None = None
    """In which it must have started."""
    execution_limit: shapes.ExecutionLimit | None = None
    """In which it must have ended, from its first claim."""
    lease: shapes.LeaseSeconds | None = None
    max_losses: shapes.Losses | None = None
    on_loss: OnLoss | None = None
    capabilities: shapes.Capabilities | None = None
    labels: shapes.Labels | None = None
    metadata: Any = None
    trace: str | None = None
    """A W3C traceparent; an invalid one is dropped."""
    idempotency_key: shapes.Key | None = None
    """The same key with the same request gives the same task; the header `Idempotency-Key` says the same."""
    unique: Unique | None = None
    """That of several tasks one is enough, and which those are."""
    unique_key: shapes.Key | None = None
    """What stands for the fields by which it is unique, where the payload cannot be read."""


class SubmitListed(TaskRequest, kw_only=True, forbid_unknown_fields=True):
    """A task in a list, as `SubmitTask`. What breaks a rule is told in its place and does not touch the others."""

    payload: Json = shapes.NULL
    run_at: datetime | None = None


class SubmittedTask(msgspec.Struct, kw_only=True, frozen=True):
    """A task that exists. `replayed`: it existed before, under the same idempotency key. `state` is null where it has
    been removed since: its retention is over, its key is not. `outcome` tells what became of a unique task: one that
    was `created`, one in the place of another (`replaced`), or another that was `existing` or `debounced`.
    A dead letter that runs again is `requeued`.
    """

    id: Id
    state: TaskState | None
    replayed: bool = False
    outcome: SubmitOutcome = SubmitOutcome.CREATED


class SubmitAnswered(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """One item of a list: `id` and `state` of the task, or the `problem` for which nothing of it was stored. One that
    is `replayed` and has no `state` has been removed since. `outcome` as for a single task; `created` if not said.
    """

    id: Id | None = None
    state: TaskState | None = None
    replayed: bool = False
    outcome: SubmitOutcome = SubmitOutcome.CREATED
    problem: dict[str, Any] | None = None


class SubmittedTasks(msgspec.Struct, kw_only=True, frozen=True):
    """One answer per item, in order."""

    tasks: list[SubmitAnswered]


class TaskError(msgspec.Struct, kw_only=True, frozen=True):
    """The error of a handler."""

    type: str
    message: str
    traceback: str = ""


class CancelRecord(msgspec.Struct, kw_only=True, frozen=True):
    """The first request to cancel."""

    at: datetime
    actor: str
    reason: Reason
    text: str | None = None
    note: str | None = None


class Task(msgspec.Struct, kw_only=True, frozen=True):
    """A task as it stands. Lists leave `payload` and `result` out."""

    id: Id
    organization: str
    kind: str
    queue: str
    priority: int
    state: TaskState
    reason: Reason | None = None
    generation: int
    attempt: int
    """The number of the attempt that runs or comes next; after the end that of the last one, 0 when there was none."""
    losses: int
    max_attempts: int
    fence: int | None = None
    worker: str | None = None
    job: str | None = None
    name: str | None = None
    waits: int = 0
    created_at: datetime
    due_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    lease_expires_at: datetime | None = None
    deadline_at: datetime | None = None
    expires_at: datetime | None = None
    phase: str | None = None
    progress: dict[str, int] | None = None
    last_error: TaskError | None = None
    summary: str | None = None
    cancel: CancelRecord | None = None
    principal: str
    initiator: str
    idempotency_key: str | None = None
    labels: dict[str, str] = {}
    metadata: Any = None
    discarded: bool = False
    redacted_at: datetime | None = None
    payload: Json = shapes.LEFT_OUT
    payload_encoding: str | UnsetType = UNSET
    """`json`, or the payload is base64 of that encoding; left out where there is no payload."""
    result: Json = shapes.LEFT_OUT
    result_encoding: str | UnsetType = UNSET


class TaskPage(msgspec.Struct, kw_only=True, frozen=True):
    """Tasks, newest first. There are more while `cursor` is not null, even after a page that is short."""

    tasks: list[Task]
    cursor: str | None = None


class TaskQuery(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which tasks. A parameter that is repeated means any of its values."""

    state: list[TaskState] = []
    kind: list[str] = []
    queue: list[str] = []
    job: Id | None = None
    label: list[shapes.Label] = []
    """`name=value`"""
    reason: list[Reason] = []
    submitter: list[str] = []
    ended_from: datetime | None = None
    ended_before: datetime | None = None
    sort: Sort = Sort.NEWEST
    """By creation; by end where only ends are asked for."""
    limit: shapes.Limit = shapes.PAGE_DEFAULT_ROWS
    cursor: shapes.Cursor | None = None


class DeadLetterQuery(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which dead letters. Those that were discarded only when asked for."""

    kind: list[str] = []
    queue: list[str] = []
    job: Id | None = None
    label: list[shapes.Label] = []
    """`name=value`"""
    reason: list[Reason] = []
    submitter: list[str] = []
    ended_from: datetime | None = None
    ended_before: datetime | None = None
    discarded: bool = False
    sort: Sort = Sort.NEWEST
    """By creation; by end where only ends are asked for."""
    limit: shapes.Limit = shapes.PAGE_DEFAULT_ROWS
    cursor: shapes.Cursor | None = None


class Attempt(msgspec.Struct, kw_only=True, frozen=True):
    """One claim of a task."""

    id: Id
    generation: int
    attempt: int
    fence: int
    state: AttemptState
    reason: Reason | None = None
    worker: str
    build: str | None = None
    queued_at: datetime | None = None
    leased_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    error: TaskError | None = None


class Attempts(msgspec.Struct, kw_only=True, frozen=True):
    """All claims of a task, in order."""

    attempts: list[Attempt]


class Event(msgspec.Struct, kw_only=True, frozen=True):
    """One line of a history. `id` is stable and orders it."""

    id: str
    at: datetime
    type: str
    actor: str
    initiator: str | None = None
    generation: int = 1
    data: dict[str, Any] = {}


class Events(msgspec.Struct, kw_only=True, frozen=True):
    """A history, in order."""

    events: list[Event]


class Obstacle(msgspec.Struct, kw_only=True, frozen=True):
    """One thing that keeps a task from running: what it is, what holds it (ids and names), and what would free it."""

    sort: ObstacleSort
    text: str
    frees: str
    by: list[str] = []
    until_at: datetime | None = None
    """When it is over by itself, or the task ends for it, where that is known."""
    by_what: str | None = None
    """What sort of thing `by` names: `task`, `worker`, `queue`, `kind` or `organization`."""


class Obstacles(msgspec.Struct, kw_only=True, frozen=True):
    """All that keeps a task from running; none where the next worker that fits gets it."""

    obstacles: list[Obstacle]


class Part(msgspec.Struct, kw_only=True, frozen=True):
    """A piece of a result."""

    attempt_id: Id
    sequence: int
    key: str
    sha256: str
    final: bool
    superseded: bool
    at: datetime
    data: Json
    data_encoding: str = shapes.JSON


class Parts(msgspec.Struct, kw_only=True, frozen=True):
    """The pieces of a result, by attempt and sequence."""

    parts: list[Part]


class LogLine(msgspec.Struct, kw_only=True, frozen=True):
    """One line that a handler logged. `dropped`: so many lines just before it were not kept."""

    at: datetime
    attempt_id: Id
    level: Literal["debug", "info", "warning", "error", "critical"]
    message: str
    dropped: int = 0


class Logs(msgspec.Struct, kw_only=True, frozen=True):
    """What handlers logged, attempt by attempt, in order. `cursor` stands behind the last line: ask with it for `more`,
    or later for lines that have come since; null before the first line.
    """

    logs: list[LogLine]
    cursor: str | None = None
    more: bool = False


class LogQuery(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which lines: the first `limit` behind `cursor`."""

    limit: shapes.Limit = shapes.PAGE_DEFAULT_ROWS
    cursor: shapes.Cursor | None = None


class CancelTask(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Why a task shall not run. `reason` is told to everybody who sees the task, `note` to administrators."""

    reason: shapes.Text | None = None
    note: shapes.Note | None = None


class CancelledTask(msgspec.Struct, kw_only=True, frozen=True):
    """The task after a cancel, with the record of the first request."""

    id: Id
    state: TaskState
    reason: Reason | None = None
    cancel: CancelRecord | None = None


Ids = Annotated[list[Id], Meta(extra_json_schema={"maxItems": limits.SUBMIT_MAX_TASKS})]


class CancelTasks(CancelTask, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Many tasks to be cancelled."""

    ids: Ids


class CancelAnswered(msgspec.Struct, kw_only=True, frozen=True):
    """What became of one cancel."""

    id: Id
    answer: Literal["cancelled", "cancelling", "already", "ended", "not_found"]
    state: TaskState | None = None
    reason: Reason | None = None


class CancelledTasks(msgspec.Struct, kw_only=True, frozen=True):
    """One answer per id, in order."""

    tasks: list[CancelAnswered]


class WaitTasks(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Wait until tasks have ended: all, or `any` of them, for at most `wait` seconds."""

    ids: Ids
    wait: shapes.Wait = shapes.WAIT_MAX_SECONDS
    any: bool = False


class EndedTask(msgspec.Struct, kw_only=True, frozen=True):
    """How a task ended."""

    id: Id
    state: TaskState
    reason: Reason
    result: Json = shapes.NULL
    result_encoding: str | UnsetType = UNSET
    """Left out where there is no result."""
    error: TaskError | None = None
    summary: str | None = None


class EndedTasks(msgspec.Struct, kw_only=True, frozen=True):
    """Those that have ended. Ask again for the others."""

    tasks: list[EndedTask]
