"""Schedules as they are shown, and what can be done with them: here, and over HTTP."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from perdure.domain.schedule import FireOutcome, SkipReason
from perdure.engine.requests import Principal
from perdure.engine.schedule_definition import ScheduleDefinition
from perdure.store.schedules import Fire, Made

Definition = ScheduleDefinition | Mapping[str, Any]


class ScheduleView(NamedTuple):
    """A schedule and how it stands. Instants are microseconds since 1970 UTC."""

    name: str
    etag: str
    """Another one as soon as the definition says something else."""
    definition: Mapping[str, Any]
    """What was declared, as `ScheduleDefinition` has it."""
    declared_by: str
    declared_us: int
    enabled: bool
    paused: bool
    paused_by: str | None
    paused_us: int | None
    next_us: int | None
    """The next instant; while paused, the one that would be next."""
    due_us: int | None
    """When something comes of it: the instant and its jitter. `None` while nothing will."""
    waiting_us: int | None
    """An instant that waits for the end of what an earlier one made."""
    last_us: int | None
    last_outcome: FireOutcome | None
    last_reason: SkipReason | None
    last_task_id: str | None
    last_job_id: str | None
    created: bool = False
    """It was not there before."""


class SchedulePage(NamedTuple):
    """Schedules by name, and where to go on: `None` at the end."""

    schedules: list[ScheduleView]
    cursor: str | None


class FirePage(NamedTuple):
    """What came of instants, the latest first, and where to go on."""

    fires: list[Fire]
    cursor: str | None


class Backfilled(NamedTuple):
    """What came of the instants of a range, in order."""

    made: Sequence[Made]


class ScheduleOperations(Protocol):
    """What can be done with schedules. `NotFound` where there is none of that name."""

    async def page(
        self, by: Principal, limit: int, cursor: str | None = None, of_set: str | None = None
    ) -> SchedulePage: ...
    async def get(self, name: str, by: Principal) -> ScheduleView | None: ...
    async def put(
        self, name: str, definition: Definition, by: Principal, expected: str | None = None
    ) -> ScheduleView: ...
    async def delete(self, name: str, by: Principal, expected: str | None = None) -> bool: ...
    async def pause(self, name: str, by: Principal) -> ScheduleView: ...
    async def resume(self, name: str, by: Principal) -> ScheduleView: ...
    async def trigger(self, name: str, by: Principal, key: str | None = None) -> Made: ...
    async def backfill(self, name: str, start_us: int, end_us: int, by: Principal) -> Backfilled: ...
    async def preview(self, name: str, count: int, by: Principal, after_us: int | None = None) -> list[int]: ...
    async def fires(self, name: str, by: Principal, limit: int, cursor: str | None = None) -> FirePage: ...
