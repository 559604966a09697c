"""Schedules of an app: declared beside their tasks, or made and changed by the program itself."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from perdure.ambient import SystemClock
from perdure.app.call import Target, call_of
from perdure.app.handle import Handle
from perdure.app.job import JobBuilder
from perdure.app.job_handle import JobHandle
from perdure.app.task import Task
from perdure.domain import limits
from perdure.domain.schedule import Overlap
from perdure.domain.timing import Fold, Gap
from perdure.engine.apply_schedules import ApplySchedules, Step, of_schedule
from perdure.engine.quantities import instant_us
from perdure.engine.requests import Principal
from perdure.engine.schedule_definition import ScheduleDefinition, document_of, understand
from perdure.engine.schedule_views import Definition, ScheduleOperations, ScheduleView
from perdure.engine.zones import Zones
from perdure.errors import Misuse, Refused
from perdure.store.schedules import Fire, Made
from perdure.wire.shapes import instant

if TYPE_CHECKING:
    from perdure.app.app import App
    from perdure.app.sync import SyncHandle, SyncJobHandle

T = TypeVar("T", bound=Task[..., Any])


class ScheduleOptions(TypedDict, total=False):
    """When a schedule comes, beside `cron`, and by which policies. Durations are seconds, instants aware datetimes."""

    every: float | None
    """Even intervals instead of `cron`."""
    at: datetime | None
    """One instant instead of `cron`."""
    time_zone: str | None
    """On whose clock `cron` is read, such as Europe/Berlin; UTC when not said."""
    gap: Gap | None
    """A time that this clock skips: made up for `after` the gap, or `skip`."""
    fold: Fold | None
    """A time that this clock shows twice: the `first` counts, or `both`."""
    start: datetime | None
    end: datetime | None
    catch_up: float
    """Instants that were missed are made up for if they are no older."""
    overlap: Overlap
    """While what an earlier instant made has not ended: `allow`, `skip`, `queue_one` or `cancel_running`."""
    jitter: float
    enabled: bool


class AppSchedules:
    """What a program does with schedules: `app.schedules`."""

    def __init__(self, app: "App") -> None:
        self._app = app
        self._declared: dict[str, ScheduleDefinition] = {}
        self._zones = Zones()

    def declare(self, cron: str | None, name: str | None, payload: Any, options: ScheduleOptions) -> Callable[[T], T]:
        """A decorator that declares a schedule of a task. Raises `Misuse`, and `Invalid` with the field."""

        def declare(task: T) -> T:
            if not isinstance(task, Task):
                raise Misuse("put @app.schedule(...) above @app.task(...): it schedules a task")
            wanted = task.kind if name is None else name
            if wanted in self._declared:
                raise Misuse(f"schedule {wanted!r} is declared already: give this one a name of its own", name=wanted)
            try:
                self._declared[wanted] = self._definition(task, cron, payload, options)
            except Refused as refusal:
                raise of_schedule(wanted, refusal) from None
            return task

        return declare

    def _definition(
        self, target: Target | JobBuilder, cron: str | None, payload: Any, options: ScheduleOptions
    ) -> ScheduleDefinition:
        unknown = sorted(options.keys() - ScheduleOptions.__annotations__.keys())
        if unknown:
            known = ", ".join(sorted(ScheduleOptions.__annotations__))
            raise Misuse(f"a schedule has no option {unknown[0]!r}; the options are {known}", field=unknown[0])
        if isinstance(target, JobBuilder):
            definition = ScheduleDefinition(cron=cron, job=target.hand_over(), **options)
        else:
            call = call_of(target, (), {}, payload=payload, known=self._app.tasks)
            if call.task is not None and payload is not None:
                call.task.handler.check_payload(payload)
            definition = ScheduleDefinition(cron=cron, task=call.request(), **options)
        understand("", "", definition, 0, self._zones, SystemClock().wall_us())
        document_of(definition)
        return definition

    async def declare_on(self, operations: ScheduleOperations, by: Principal) -> None:
        """Put what is declared beside tasks. Workers do so when they start; what says so already stays as it is."""
        for name in sorted(self._declared):
            try:
                await operations.put(name, self._declared[name], by)
            except Refused as refusal:
                raise of_schedule(name, refusal) from None

    async def put(
        self,
        name: str,
        target: Target | JobBuilder,
        cron: str | None = None,
        *,
        payload: Any = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleView:
        """Declare a schedule of a task, a call of one, the name of a kind, or a job that is built and not submitted.

        One of that name is replaced; one that says so already is left as it is. Raises `Invalid` with the field.
        """
        definition = self._definition(target, cron, payload, options)
        return await (await self._operations()).put(name, definition, self._app.principal)

    async def apply(self, set: str, schedules: Mapping[str, Definition], *, dry_run: bool = False) -> Sequence[Step]:
        """Converge to a declared set: create, change, and delete what is gone from it. Tells what was done."""
        apply = ApplySchedules(await self._operations())
        return await apply(set, schedules, self._app.principal, dry_run=dry_run)

    async def get(self, name: str) -> ScheduleView | None:
        """One schedule, or `None`."""
        return await (await self._operations()).get(name, self._app.principal)

    async def all(self, set: str | None = None) -> Sequence[ScheduleView]:
        """All schedules by name; only those of a declared set where that is named."""
        operations = await self._operations()
        found: list[ScheduleView] = []
        cursor: str | None = None
        while True:
            page = await operations.page(self._app.principal, limits.LIST_MAX_ROWS, cursor, set)
            found += page.schedules
            cursor = page.cursor
            if cursor is None:
                return found

    async def delete(self, name: str) -> bool:
        """Remove a schedule; what it made stays. False when there was none."""
        return await (await self._operations()).delete(name, self._app.principal)

    async def pause(self, name: str) -> ScheduleView:
        """Let nothing come of a schedule until it is resumed. Raises `NotFound`."""
        return await (await self._operations()).pause(name, self._app.principal)

    async def resume(self, name: str) -> ScheduleView:
        """Let a schedule go on with its next instant. Raises `NotFound`."""
        return await (await self._operations()).resume(name, self._app.principal)

    async def trigger(self, name: str, idempotency_key: str | None = None) -> Handle[Any] | JobHandle:
        """Let a schedule make its task or job now; under a key that was used before, tell what was made then. Raises
        `NotFound`, and why it cannot be made.
        """
        made = await (await self._operations()).trigger(name, self._app.principal, idempotency_key)
        if made.job_id is not None:
            return await self._app.job_handle(made.job_id)
        return self._app.handle(made.task_id or "")

    async def backfill(self, name: str, start: datetime, end: datetime) -> Sequence[Made]:
        """Let the instants of a time that has passed make what they did not, from `start` on and before `end`."""
        operations = await self._operations()
        filled = await operations.backfill(name, _us(start, "start"), _us(end, "end"), self._app.principal)
        return filled.made

    async def preview(self, name: str, count: int = 10, after: datetime | None = None) -> Sequence[datetime]:
        """The next instants of a schedule, after one, or after now."""
        after_us = None if after is None else _us(after, "after")
        found = await (await self._operations()).preview(name, count, self._app.principal, after_us)
        return [moment for each in found if (moment := instant(each)) is not None]

    async def fires(self, name: str, limit: int = 50) -> Sequence[Fire]:
        """What came of the last instants of a schedule, the latest first: tasks, jobs, and skips with their reasons."""
        return (await (await self._operations()).fires(name, self._app.principal, limit)).fires

    async def _operations(self) -> ScheduleOperations:
        return (await self._app.operations()).schedules


def _us(moment: datetime, field: str) -> int:
    return instant_us(moment, field, SystemClock().wall_us()) or 0


class SyncSchedules:
    """The same for code without `await`: `app.sync.schedules`."""

    def __init__(self, app: "App") -> None:
        self._app = app

    def put(
        self,
        name: str,
        target: Target | JobBuilder,
        cron: str | None = None,
        *,
        payload: Any = None,
        **options: Unpack[ScheduleOptions],
    ) -> ScheduleView:
        """See `AppSchedules.put`."""
        return self._app.sync.portal.call(self._app.schedules.put, name, target, cron, payload=payload, **options)

    def apply(self, set: str, schedules: Mapping[str, Definition], *, dry_run: bool = False) -> Sequence[Step]:
        """See `AppSchedules.apply`."""
        return self._app.sync.portal.call(self._app.schedules.apply, set, schedules, dry_run=dry_run)

    def get(self, name: str) -> ScheduleView | None:
        """See `AppSchedules.get`."""
        return self._app.sync.portal.call(self._app.schedules.get, name)

    def all(self, set: str | None = None) -> Sequence[ScheduleView]:
        """See `AppSchedules.all`."""
        return self._app.sync.portal.call(self._app.schedules.all, set)

    def delete(self, name: str) -> bool:
        """See `AppSchedules.delete`."""
        return self._app.sync.portal.call(self._app.schedules.delete, name)

    def pause(self, name: str) -> ScheduleView:
        """See `AppSchedules.pause`."""
        return self._app.sync.portal.call(self._app.schedules.pause, name)

    def resume(self, name: str) -> ScheduleView:
        """See `AppSchedules.resume`."""
        return self._app.sync.portal.call(self._app.schedules.resume, name)

    def trigger(self, name: str, idempotency_key: str | None = None) -> "SyncHandle[Any] | SyncJobHandle":
        """See `AppSchedules.trigger`."""
        # Here, because it imports this.
        from perdure.app.sync import SyncHandle, SyncJobHandle

        portal = self._app.sync.portal
        made = portal.call(self._app.schedules.trigger, name, idempotency_key)
        return SyncJobHandle(portal, made) if isinstance(made, JobHandle) else SyncHandle(portal, made)

    def backfill(self, name: str, start: datetime, end: datetime) -> Sequence[Made]:
        """See `AppSchedules.backfill`."""
        return self._app.sync.portal.call(self._app.schedules.backfill, name, start, end)

    def preview(self, name: str, count: int = 10, after: datetime | None = None) -> Sequence[datetime]:
        """See `AppSchedules.preview`."""
        return self._app.sync.portal.call(self._app.schedules.preview, name, count, after)

    def fires(self, name: str, limit: int = 50) -> Sequence[Fire]:
        """See `AppSchedules.fires`."""
        return self._app.sync.portal.call(self._app.schedules.fires, name, limit)
