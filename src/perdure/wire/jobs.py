"""Bodies about jobs."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from perdure.domain import limits
from perdure.domain.states import JobState, Reason, TaskState
from perdure.domain.task import FailurePolicy, Trigger
from perdure.engine.requests import Dependency
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
    """A job as it stands. `counts` maps states of tasks to numbers."""

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
