"""Bodies about jobs."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from perdure.domain import limits
from perdure.domain.states import JobState, Reason, TaskState
from perdure.domain.task import FailurePolicy, Trigger
from perdure.engine.requests import Dependency
from perdure.store.sort import Sort
from perdure.wire import shapes
from perdure.wire.shapes import Id
from perdure.wire.tasks import CancelRecord, SubmitTask


class SubmitJobTask(SubmitTask, kw_only=True, forbid_unknown_fields=True):
    """A task of a job. `bindings` maps a payload field to the parent whose result fills it, or to several parents."""

    name: shapes.Title
    depends_on: list[str | Dependency] = msgspec.field(default_factory=list)
    trigger: Trigger = "all_succeeded"
    bindings: dict[str, str | list[str]] = msgspec.field(default_factory=dict)


class SubmitJob(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A DAG of tasks to be submitted together."""

    name: shapes.Title
    tasks: Annotated[list[SubmitJobTask], Meta(extra_json_schema={"minItems": 1, "maxItems": limits.JOB_MAX_TASKS})]
    on_failure: FailurePolicy = "fail"
    metadata: Any = None
    idempotency_key: shapes.Key | None = None


class SubmittedJob(msgspec.Struct, kw_only=True, frozen=True):
    """A job that exists. `tasks` maps its tasks' names to ids; `state` is as of the submit."""

    id: Id
    state: JobState
    tasks: dict[str, Id]
    replayed: bool = False


class Job(msgspec.Struct, kw_only=True, frozen=True):
    """A job as it stands. `counts` maps states of tasks to numbers; `failed` there is every bad end."""

    id: Id
    organization: str
    name: str
    state: JobState
    policy: str
    total: int
    open: int
    counts: dict[str, int]
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    failing_since_at: datetime | None = None
    cancel: CancelRecord | None = None
    principal: str
    initiator: str
    metadata: Any = None


class JobPage(msgspec.Struct, kw_only=True, frozen=True):
    """Jobs, newest first. There are more while `cursor` is not null."""

    jobs: list[Job]
    cursor: str | None = None


class JobQuery(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which jobs. A state that is repeated means any of them."""

    state: list[JobState] = []
    sort: Sort = Sort.NEWEST
    limit: shapes.Limit = shapes.PAGE_DEFAULT_ROWS
    cursor: shapes.Cursor | None = None


class JobTask(msgspec.Struct, kw_only=True, frozen=True):
    """One task in its job. `parents` are names."""

    id: Id
    name: str
    kind: str
    state: TaskState
    reason: Reason | None = None
    parents: list[str]
    queued_at: datetime | None = None
    leased_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None


class JobTasks(msgspec.Struct, kw_only=True, frozen=True):
    """All tasks of a job in the order of submission."""

    tasks: list[JobTask]


class JobProgress(msgspec.Struct, kw_only=True, frozen=True):
    """How far a job is. `counts` maps states of tasks to numbers; `failed` there is every bad end.

    `items_done` and `items_total` add up what handlers told of their items; null where none did.
    """

    id: Id
    state: JobState
    total: int
    ended: int
    counts: dict[str, int]
    items_done: int | None = None
    items_total: int | None = None
    created_at: datetime
    started_at: datetime | None = None
    failing_since_at: datetime | None = None
    finished_at: datetime | None = None


class TimelineTask(msgspec.Struct, kw_only=True, frozen=True):
    """One task: it `waited` seconds in its lane and was held for `ran` seconds, both by its last attempt.

    `critical`: it lies on the critical path.
    """

    id: Id
    name: str
    kind: str
    state: TaskState
    parents: list[str]
    queued_at: datetime | None = None
    leased_at: datetime | None = None
    finished_at: datetime | None = None
    waited: float = 0.0
    ran: float = 0.0
    critical: bool = False


class JobTimeline(msgspec.Struct, kw_only=True, frozen=True):
    """How a job ran; for one that has not ended, so far. Durations are seconds.

    `critical_path` adds the run times along the heaviest chain of dependencies, `critical_tasks`: no number of workers
    is faster.
    """

    id: Id
    name: str
    state: JobState
    created_at: datetime
    finished_at: datetime | None = None
    makespan: float
    work: float
    critical_path: float
    critical_tasks: list[str]
    parallelism: float
    tasks: list[TimelineTask]
    """In the order in which they began; those that never did come last."""


class JobRetried(msgspec.Struct, kw_only=True, frozen=True):
    """How many failed tasks of the job run again, and how many that were cancelled for them."""

    id: Id
    state: JobState
    redriven: int
    revived: int


class CancelJob(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Why a job shall stop; told to everybody who sees it."""

    reason: shapes.Text | None = None


class JobStopping(msgspec.Struct, kw_only=True, frozen=True):
    """The job after a cancel; its open tasks are cancelled in the background."""

    id: Id
    state: JobState
    cancel: CancelRecord | None = None
    already: bool = False
    """It was cancelled before."""
