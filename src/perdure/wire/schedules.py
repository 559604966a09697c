"""Bodies about schedules."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from perdure.domain import limits
from perdure.domain.cron import CRON_MAX_CHARS
from perdure.domain.retry import Retry
from perdure.domain.schedule import Cause, FireOutcome, Overlap, SkipReason
from perdure.domain.task import OnLoss
from perdure.domain.timing import Fold, Gap
from perdure.domain.unique import Unique
from perdure.wire import shapes
from perdure.wire.jobs import SubmitJob
from perdure.wire.shapes import Id, Json

CronText = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": CRON_MAX_CHARS, "format": "cron"})]
"""Format `cron`: five fields, six with seconds in front, or an alias."""
ZoneName = Annotated[str, Meta(extra_json_schema={"minLength": 1, "maxLength": 100, "format": "time-zone"})]
"""Format `time-zone`: a name of the tz database."""
EverySeconds = Annotated[
    float,
    Meta(
        extra_json_schema={
            "minimum": limits.EVERY_MIN_US / limits.SECOND_US,
            "maximum": limits.EVERY_MAX_US / limits.SECOND_US,
        }
    ),
]
CatchUp = Annotated[float, Meta(extra_json_schema={"minimum": 0, "maximum": limits.CATCH_UP_MAX_US / limits.SECOND_US})]
JitterSeconds = Annotated[
    float, Meta(extra_json_schema={"minimum": 0, "maximum": limits.JITTER_MAX_US / limits.SECOND_US})
]
Previewed = Annotated[int, Meta(ge=1, le=limits.PREVIEW_MAX_INSTANTS)]
_DAY = limits.CATCH_UP_DEFAULT_US / limits.SECOND_US


class ScheduledTask(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The task that each instant makes, as in a submit."""

    kind: shapes.KindName
    payload: Json = shapes.NULL
    queue: shapes.QueueName | None = None
    priority: shapes.Priority | None = None
    delay: shapes.Delay | None = None
    max_attempts: shapes.Attempts | None = None
    retry: Retry | None = None
    timeout: shapes.Timeout | None = None
    ttl: shapes.Ttl | None = None
    execution_limit: shapes.ExecutionLimit | None = None
    lease: shapes.LeaseSeconds | None = None
    max_losses: shapes.Losses | None = None
    on_loss: OnLoss | None = None
    capabilities: shapes.Capabilities | None = None
    labels: shapes.Labels | None = None
    metadata: Any = None
    unique: Unique | None = None
    unique_key: shapes.Key | None = None


class PutSchedule(msgspec.Struct, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A schedule, whole: when, by one of `cron`, `every` (seconds) and `at`; and what, by one of `task` and `job`."""

    cron: CronText | None = None
    every: EverySeconds | None = None
    at: datetime | None = None
    time_zone: ZoneName | None = None
    """On whose clock `cron` is read; UTC when not said."""
    gap: Gap | None = None
    """What holds for a time that this clock skips."""
    fold: Fold | None = None
    """What holds for a time that this clock shows twice."""
    start: datetime | None = None
    end: datetime | None = None
    task: ScheduledTask | None = None
    job: SubmitJob | None = None
    catch_up: CatchUp = _DAY
    overlap: Overlap = "skip"
    jitter: JitterSeconds = 0.0
    enabled: bool = True
    set: shapes.Title | None = None


class Schedule(msgspec.Struct, kw_only=True, frozen=True):
    """A schedule as it stands. `definition` is what was put, less what is as by default."""

    name: str
    etag: str
    definition: dict[str, Any]
    declared_by: str
    declared_at: datetime
    enabled: bool
    paused: bool
    paused_by: str | None = None
    paused_at: datetime | None = None
    next_at: datetime | None = None
    due_at: datetime | None = None
    """The next instant and its jitter; null while nothing will come of it."""
    waiting_at: datetime | None = None
    last_at: datetime | None = None
    last_outcome: FireOutcome | None = None
    last_reason: SkipReason | None = None
    last_task_id: Id | None = None
    last_job_id: Id | None = None


class SchedulePage(msgspec.Struct, kw_only=True, frozen=True):
    """Schedules by name. There are more while `cursor` is not null."""

    schedules: list[Schedule]
    cursor: str | None = None


class ScheduleQuery(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which schedules."""

    limit: shapes.Limit = shapes.PAGE_DEFAULT_ROWS
    cursor: shapes.Cursor = ""
    set: shapes.Title | None = None


class PreviewQuery(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """How many instants, and after which one; now when not said."""

    count: Previewed = 10
    after: datetime | None = None


class Instants(msgspec.Struct, kw_only=True, frozen=True):
    """Instants to come, in order."""

    instants: list[datetime]


class FireQuery(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which page."""

    limit: shapes.Limit = shapes.PAGE_DEFAULT_ROWS
    cursor: shapes.Cursor = ""


class Fire(msgspec.Struct, kw_only=True, frozen=True):
    """What came of an instant, or of several that follow each other and were skipped for one reason."""

    first_at: datetime
    last_at: datetime
    instants: int
    cause: Cause
    outcome: FireOutcome
    reason: SkipReason | None = None
    text: str | None = None
    task_id: Id | None = None
    job_id: Id | None = None
    at: datetime


class FirePage(msgspec.Struct, kw_only=True, frozen=True):
    """The latest first. There are more while `cursor` is not null."""

    fires: list[Fire]
    cursor: str | None = None


class MadeAtInstant(msgspec.Struct, kw_only=True, frozen=True):
    """What an instant made that was asked for. `replayed`: it had made something before. `refusal`: why nothing."""

    instant_at: datetime
    task_id: Id | None = None
    job_id: Id | None = None
    replayed: bool = False
    refusal: str | None = None


class Backfill(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A time that has passed: from `start` on and before `end`."""

    start: datetime
    end: datetime


class Backfilled(msgspec.Struct, kw_only=True, frozen=True):
    """What came of the instants of a range, in order."""

    made: list[MadeAtInstant]
