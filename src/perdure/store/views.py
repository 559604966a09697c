"""The protocol of reading: bounded queries over indexes, never a scan that grows with what has ended.

All times are microseconds since 1970 UTC by the store's clock. Everything is bound to one organization.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from perdure.domain.breaker import BreakerEvent, BreakerState
from perdure.domain.states import AttemptState, JobState, Reason, TaskState
from perdure.domain.task import Body
from perdure.domain.why import Obstacle
from perdure.store.flow_views import GateFilter, PauseView
from perdure.store.sort import Sort


class ErrorView(msgspec.Struct, frozen=True):
    """A handler's error as data."""

    type: str
    message: str
    traceback: str = ""


class CancelView(msgspec.Struct, frozen=True):
    """The first cancel request. `note` is for its author and administrators."""

    at_us: int
    actor: str
    reason: Reason
    text: str | None = None
    note: str | None = None


class TaskView(msgspec.Struct, frozen=True, kw_only=True):
    """A task as it stands."""

    id: str
    organization: str
    kind: str
    queue: str
    priority: int
    state: TaskState
    reason: Reason | None = None
    generation: int
    attempt: int
    """The number of the attempt that runs or comes next: one more than the handler's own failures so far. After the end
    that of the last attempt; 0 when there was none.
    """
    losses: int
    max_attempts: int
    fence: int | None = None
    worker: str | None = None
    job: str | None = None
    name: str | None = None
    waits: int = 0
    """How many parents are open."""
    created_us: int
    due_us: int | None = None
    started_us: int | None = None
    finished_us: int | None = None
    lease_expires_us: int | None = None
    deadline_us: int | None = None
    expires_us: int | None = None
    phase: str | None = None
    progress: dict[str, int] | None = None
    last_error: ErrorView | None = None
    summary: str | None = None
    cancel: CancelView | None = None
    principal: str
    initiator: str
    idempotency_key: str | None = None
    labels: dict[str, str] = {}
    metadata: Any = None
    discarded: bool = False
    redacted_us: int | None = None
    payload: Body | None = None
    """Only in the view of one task."""
    result: Body | None = None
    """Only in the view of one task."""


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One claim of a task, live or ended, ordered by fence."""

    id: str
    generation: int
    attempt: int
    fence: int
    state: AttemptState
    reason: Reason | None = None
    worker: str
    build: str | None = None
    queued_us: int | None = None
    leased_us: int
    started_us: int | None = None
    ended_us: int | None = None
    error: ErrorView | None = None


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a task's or job's history. `id` is stable and orders the history."""

    id: str
    at_us: int
    type: str
    actor: str
    initiator: str | None = None
    generation: int = 1
    data: dict[str, Any] = {}


class PartView(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a result. `superseded`: its attempt is not the one whose result counts. A part that its handler named
    moves to the attempt that sends it again.
    """

    attempt_id: str
    sequence: int
    key: str
    sha256: str
    final: bool
    superseded: bool
    data: Body
    at_us: int


class LogView(msgspec.Struct, frozen=True, kw_only=True):
    """A line that a handler logged. `dropped`: so many lines just before it were not kept."""

    attempt_id: str
    at_us: int
    level: str
    message: str
    dropped: int = 0


class LogPage(NamedTuple):
    """Lines, oldest first. `cursor` stands behind the last of them: ask again with it for `more`, or for those to come;
    `None` before the first.
    """

    lines: list[LogView]
    cursor: str | None
    more: bool


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it stands. `counts` maps states of tasks to numbers; `failed` there is every bad end."""

    id: str
    organization: str
    name: str
    state: JobState
    policy: str
    total: int
    open: int
    counts: dict[str, int]
    created_us: int
    started_us: int | None = None
    finished_us: int | None = None
    failing_since_us: int | None = None
    cancel: CancelView | None = None
    principal: str
    initiator: str
    metadata: Any = None


class JobProgress(msgspec.Struct, frozen=True, kw_only=True):
    """How far a job is. `counts` maps states of tasks to numbers; `failed` there is every bad end.

    `items_done` and `items_total` add up what handlers told of their items, in `ctx.progress`; `None` where none did.
    """

    id: str
    state: JobState
    total: int
    ended: int
    counts: dict[str, int]
    items_done: int | None = None
    items_total: int | None = None
    created_us: int
    started_us: int | None = None
    failing_since_us: int | None = None
    finished_us: int | None = None


class JobTaskView(msgspec.Struct, frozen=True, kw_only=True):
    """One task in its job, for progress, critical path and Gantt."""

    id: str
    name: str
    kind: str
    state: TaskState
    reason: Reason | None = None
    parents: tuple[str, ...]
    """Names."""
    queued_us: int | None = None
    leased_us: int | None = None
    started_us: int | None = None
    finished_us: int | None = None


class WorkerView(msgspec.Struct, frozen=True, kw_only=True):
    """A worker as it said of itself, with what it holds now. `silent`: seconds since `seen_us`, as the store counts."""

    id: str
    name: str
    host: str
    pid: int
    version: str
    build: str
    kinds: tuple[str, ...]
    queues: tuple[str, ...]
    organizations: tuple[str, ...]
    capabilities: tuple[str, ...]
    capacity: int
    leases: int
    order: str
    ordered_by: str | None = None
    """Who gave the order; `None` while nobody has given any."""
    ordered_us: int | None = None
    registered_us: int
    seen_us: int
    left_us: int | None = None
    silent: float | None = None


class QueueView(msgspec.Struct, frozen=True, kw_only=True):
    """A queue: its policy and what is in it. `counts` maps task states to numbers."""

    name: str
    paused: bool
    dead_letters: bool
    depth: int | None
    concurrency: int | None = None
    rate: int | None = None
    per: float | None = None
    counts: dict[str, int]
    oldest_queued_us: int | None = None
    missing_kinds: tuple[str, ...] = ()
    """Kinds that wait here and that no active worker has."""


class BreakerView(msgspec.Struct, frozen=True, kw_only=True):
    """The breaker of a kind. `attempts` and `failures` are what it counts now; `last_...` tells of its last change,
    which was at `since_us` by `actor`, and is `None` where it has never changed. `trips`: how often it has opened.
    """

    kind: str
    state: BreakerState
    since_us: int | None = None
    until_us: int | None = None
    """When it lets probes through, or since when; `None` when it is closed."""
    attempts: int
    failures: int
    trips: int
    last_event: BreakerEvent | None = None
    last_attempts: int | None = None
    last_failures: int | None = None
    actor: str | None = None


class CountRow(NamedTuple):
    """How many tasks of one queue and kind are in one state."""

    queue: str
    kind: str
    state: TaskState
    tasks: int


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The whole of an organization at a glance; its cost does not grow with what has ended."""

    counts: tuple[CountRow, ...]
    workers_active: int
    oldest_queued_us: int | None
    oldest_active_us: int | None
    tasks: int
    attempts: int
    results: int


class TaskFilter(NamedTuple):
    """Which tasks a list has. Empty tuples and `None` filter nothing."""

    states: tuple[TaskState, ...] = ()
    kinds: tuple[str, ...] = ()
    queues: tuple[str, ...] = ()
    job: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    reasons: tuple[Reason, ...] = ()
    discarded: bool | None = None
    submitters: tuple[str, ...] = ()
    """Principals."""
    ended_from_us: int | None = None
    """Only what ended at this instant or later."""
    ended_before_us: int | None = None


class Page(NamedTuple):
    """Rows, and the cursor for the next page. A page may be short, even empty, and have a next one."""

    rows: list[Any]
    cursor: str | None


class Ended(NamedTuple):
    """How a task ended."""

    id: str
    state: TaskState
    reason: Reason
    result: Body | None
    error: ErrorView | None
    summary: str | None


class Views(Protocol):
    """What can be read. `None` and `NotFound` are the same for what is absent and what is another organization's."""

    async def task(self, organization: str, task_id: str) -> TaskView | None:
        """One task, payload and result included."""

    async def tasks(
        self, organization: str, where: TaskFilter, limit: int, cursor: str | None = None, sort: Sort = Sort.NEWEST
    ) -> Page:
        """`TaskView`s, sorted by creation, or by end where `where.states` has ends only. Raises `Malformed` for a bad
        cursor.

        A filtered page looks at no more than `limits.LIST_SCAN_MAX_ROWS` rows.
        """

    async def why(self, organization: str, task_id: str) -> list[Obstacle]:
        """What keeps a task from running, by the rules of `domain.why`. Raises `NotFound`."""

    async def attempts(self, organization: str, task_id: str) -> list[AttemptView]:
        """All claims of a task, by fence. Raises `NotFound`."""

    async def events(self, organization: str, task_id: str) -> list[EventView]:
        """A task's history, in order. Raises `NotFound`."""

    async def parts(self, organization: str, task_id: str) -> list[PartView]:
        """A task's result parts by attempt and sequence. Raises `NotFound`."""

    async def logs(self, organization: str, task_id: str, limit: int, cursor: str | None = None) -> LogPage:
        """What handlers of a task logged, by attempt and in its order. Raises `NotFound`, `Malformed` for a bad cursor.

        At most `limits.LIST_MAX_ROWS` lines.
        """

    async def ended(self, organization: str, task_ids: Sequence[str]) -> list[Ended]:
        """Those of `task_ids` that have ended."""

    async def job(self, organization: str, job_id: str) -> JobView | None:
        """One job."""

    async def jobs(
        self,
        organization: str,
        states: Sequence[JobState],
        limit: int,
        cursor: str | None = None,
        sort: Sort = Sort.NEWEST,
    ) -> Page:
        """`JobView`s, sorted by creation. Raises `Malformed` for a bad cursor."""

    async def job_progress(self, organization: str, job_id: str) -> JobProgress | None:
        """How far one job is."""

    async def job_tasks(self, organization: str, job_id: str) -> list[JobTaskView]:
        """All tasks of a job in the order of submission. Raises `NotFound`."""

    async def job_events(self, organization: str, job_id: str) -> list[EventView]:
        """A job's own history. Raises `NotFound`."""

    async def queues(self, organization: str) -> list[QueueView]:
        """Queues that hold something or have a policy, by name."""

    async def breakers(self, organization: str) -> list[BreakerView]:
        """The breakers of kinds that have one, by kind."""

    async def gates(
        self, organization: str, kind: str, where: GateFilter, limit: int, cursor: str | None = None
    ) -> Page:
        """`GateView`s of the gates that tasks of a kind pass, by sort, name and key: also those that nobody waits at,
        until nobody has used them for an hour. Raises `Malformed` for a bad cursor.
        """

    async def pauses(self, organization: str) -> list[PauseView]:
        """What is stopped: paused, or with a breaker that is not closed; what has been for longest first."""

    async def workers(self, organization: str, active_us: int | None) -> list[WorkerView]:
        """Workers seen within `active_us`; all that are kept when `None`."""

    async def overview(self, organization: str) -> Overview:
        """Counts, oldest and totals."""
