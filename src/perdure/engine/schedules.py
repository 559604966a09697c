"""Schedules: declared, listed, paused, resumed and removed."""

from hashlib import blake2b
from typing import NamedTuple

import msgspec

from perdure.domain import limits
from perdure.domain.schedule import Passed, SkipReason, Stretch, due_instants, passed
from perdure.domain.timing import next_instant
from perdure.engine import encoding
from perdure.engine.ask_schedule import AskSchedule
from perdure.engine.definitions import ANY, NONE
from perdure.engine.names import WordCheck, check_title
from perdure.engine.quantities import check_count
from perdure.engine.requests import Principal
from perdure.engine.schedule_definition import (
    ScheduleDefinition,
    Understood,
    definition_of,
    document_of,
    read_definition,
    same_timing,
    understand,
)
from perdure.engine.schedule_views import Backfilled, Definition, FirePage, SchedulePage, ScheduleView
from perdure.engine.schedule_work import ScheduleWork
from perdure.engine.zones import Zones
from perdure.errors import Conflict, Malformed, NotFound, PreconditionFailed, StoreBusy
from perdure.store.ledger import Ledger
from perdure.store.schedules import Firing, Made, Schedule, Schedules, Seen, Standing
from perdure.store.wakeups import Topic, Wakeups

PUT_TRIES = 10


class Change(NamedTuple):
    """What a new definition does to how a schedule stands."""

    seen: Seen | None
    standing: Standing
    skipped: list[Stretch]
    drop_waiting: bool


class Scheduling:
    """Meets `ScheduleOperations` on a store."""

    def __init__(
        self, schedules: Schedules, ledger: Ledger, wakeups: Wakeups, work: ScheduleWork, zones: Zones
    ) -> None:
        self._schedules = schedules
        self._ledger = ledger
        self._wakeups = wakeups
        self._work = work
        self._zones = zones
        self._name = WordCheck("name", limits.NAME_MAX_CHARS)
        self._ask = AskSchedule(schedules, work)

    async def page(
        self, by: Principal, limit: int, cursor: str | None = None, of_set: str | None = None
    ) -> SchedulePage:
        """Schedules by name; only those of a declared set where that is named."""
        check_count(limit, "limit", 1, limits.LIST_MAX_ROWS)
        if cursor:
            _check_name_cursor(cursor)
        if of_set is not None:
            check_title(of_set, "set")
        now_us = await self._ledger.now_us()
        found = await self._schedules.page(by.organization, cursor or "", limit + 1, of_set)
        shown = [self._shown(each, now_us) for each in found[:limit]]
        return SchedulePage(shown, shown[-1].name if len(found) > limit else None)

    async def get(self, name: str, by: Principal) -> ScheduleView | None:
        """One schedule, or `None`."""
        found = await self._schedules.get(by.organization, self._name(name))
        return None if found is None else self._shown(found, await self._ledger.now_us())

    async def put(self, name: str, definition: Definition, by: Principal, expected: str | None = None) -> ScheduleView:
        """Declare a schedule, whole. One that says so already is left as it is.

        With `expected`, only over that tag (or `ANY`, or `NONE`): else `PreconditionFailed`, with the tag that is
        there. Raises `Invalid` with the field, and stores nothing then.
        """
        self._name(name)
        wanted = definition_of(definition)
        now_us = await self._ledger.now_us()
        # What can never be is told before what is there is looked at.
        understand(by.organization, name, wanted, now_us, self._zones, now_us)
        await self._work.build(wanted, by.organization, name, by.name, now_us)
        document = document_of(wanted)
        encoding.check_document(document)
        for _ in range(PUT_TRIES):
            before = await self._schedules.get(by.organization, name)
            _check_expected(name, before, expected)
            change = self._change(name, wanted, before, now_us, by)
            if before is not None and before.document == document:
                return self._shown(before, now_us)
            try:
                stored = await self._schedules.put(by.organization, name, document, by.name, **change._asdict())
            except Conflict:
                # Somebody else has changed it, or it has fired, meanwhile: what is there now decides.
                now_us = await self._ledger.now_us()
                continue
            self._wakeups.announce(Topic.CONTROL)
            return self._shown(stored, now_us)._replace(created=before is None)
        raise _busy(name)

    def _change(
        self, name: str, wanted: ScheduleDefinition, before: Schedule | None, now_us: int, by: Principal
    ) -> Change:
        old = None if before is None else read_definition(before.document)
        anchor_us = before.anchor_us if before is not None and old is not None and old.every == wanted.every else now_us
        understood = understand(by.organization, name, wanted, anchor_us, self._zones, now_us)
        skipped: list[Stretch] = []
        if before is not None and old is not None and same_timing(old, wanted):
            next_us = before.next_us
        else:
            next_us = next_instant(understood.timing, now_us) if wanted.enabled else None
            if before is not None:
                skipped = self._left(before, now_us)
        standing = Standing(anchor_us, next_us, understood.look_us(next_us))
        seen = None if before is None else Seen(before.version, before.next_us)
        return Change(seen, standing, skipped, drop_waiting=not wanted.enabled)

    def _left(self, schedule: Schedule, now_us: int) -> list[Stretch]:
        """The instants that have come by the old definition and were not decided about yet."""
        reason = SkipReason.PAUSED if schedule.paused else SkipReason.CHANGED
        come = self._come(schedule, now_us)
        return [stretch._replace(reason=reason) for stretch in come.skipped]

    def _come(self, schedule: Schedule, now_us: int) -> Passed:
        if schedule.next_us is None:
            return Passed([], [], None)
        timing = self._understood(schedule, now_us).timing
        return passed(timing, schedule.next_us, now_us, 0, True, limits.FIRE_MAX_INSTANTS)

    def _understood(self, schedule: Schedule, now_us: int) -> Understood:
        definition = read_definition(schedule.document)
        return understand(schedule.organization, schedule.name, definition, schedule.anchor_us, self._zones, now_us)

    async def delete(self, name: str, by: Principal, expected: str | None = None) -> bool:
        """Remove a schedule; what it made stays. False when there was none. `expected` as in `put`."""
        for _ in range(PUT_TRIES):
            before = await self._schedules.get(by.organization, self._name(name))
            _check_expected(name, before, expected)
            if before is None:
                return False
            try:
                return await self._schedules.delete(by.organization, name, by.name, expected=before.version)
            except Conflict:
                continue
        raise _busy(name)

    async def pause(self, name: str, by: Principal) -> ScheduleView:
        """Let nothing come of a schedule until it is resumed: its instants are skipped. Harmless when it is paused."""
        if not await self._schedules.pause(by.organization, self._name(name), by.name):
            raise _nothing(name)
        return await self._found(name, by)

    async def resume(self, name: str, by: Principal) -> ScheduleView:
        """Let a schedule go on with its next instant. Those that came meanwhile are kept as skipped."""
        while True:
            schedule = await self._known(name, by)
            if not schedule.paused:
                self._wakeups.announce(Topic.CONTROL)
                return await self._found(name, by)
            now_us = await self._ledger.now_us()
            come = self._come(schedule, now_us)
            understood = self._understood(schedule, now_us)
            await self._schedules.fire(
                [
                    Firing(
                        schedule.organization,
                        schedule.name,
                        Seen(schedule.version, schedule.next_us, True),
                        come.skipped,
                        (),
                        {},
                        {},
                        "queue_one" if schedule.waiting_us is not None else "allow",
                        come.next_us,
                        understood.look_us(come.next_us),
                        resumed=come.next_us is None or come.next_us > now_us,
                    )
                ]
            )

    async def trigger(self, name: str, by: Principal, key: str | None = None) -> Made:
        """Let a schedule make its task or job now, paused or not, whatever overlaps. Raises why it cannot be made.

        Asked again under the same `key`, it tells what was made. `IdempotencyConflict`: it makes something else now.
        """
        schedule = await self._known(name, by)
        return await self._ask.trigger(self._definition(schedule), schedule, by, await self._ledger.now_us(), key)

    async def backfill(self, name: str, start_us: int, end_us: int, by: Principal) -> Backfilled:
        """Let the instants of a time that has passed make something, from `start_us` on and before `end_us`.

        Those that made something before make nothing more. Raises `Invalid` for a range with too many instants.
        """
        schedule = await self._known(name, by)
        now_us = await self._ledger.now_us()
        understood = self._understood(schedule, now_us)
        return Backfilled(await self._ask.backfill(understood, schedule, by, start_us, end_us, now_us))

    async def preview(self, name: str, count: int, by: Principal, after_us: int | None = None) -> list[int]:
        """The next instants of a schedule, after one, or after now."""
        check_count(count, "count", 1, limits.PREVIEW_MAX_INSTANTS)
        schedule = await self._known(name, by)
        now_us = await self._ledger.now_us()
        after = now_us if after_us is None else after_us
        return list(due_instants(self._understood(schedule, now_us).timing, after, count))

    async def fires(self, name: str, by: Principal, limit: int, cursor: str | None = None) -> FirePage:
        """What came of the instants of a schedule, the latest first. Kept when the schedule is removed."""
        check_count(limit, "limit", 1, limits.LIST_MAX_ROWS)
        before = None if cursor is None else _read_cursor(cursor)
        found = await self._schedules.fires(by.organization, self._name(name), before, limit + 1)
        if not found and before is None:
            await self._known(name, by)
        shown = found[:limit]
        more = len(found) > limit
        return FirePage(shown, f"{shown[-1].first_us}-{shown[-1].outcome}" if more else None)

    def _definition(self, schedule: Schedule) -> ScheduleDefinition:
        return read_definition(schedule.document)

    async def _known(self, name: str, by: Principal) -> Schedule:
        found = await self._schedules.get(by.organization, self._name(name))
        if found is None:
            raise _nothing(name)
        return found

    async def _found(self, name: str, by: Principal) -> ScheduleView:
        return self._shown(await self._known(name, by), await self._ledger.now_us())

    def _shown(self, schedule: Schedule, now_us: int) -> ScheduleView:
        definition = read_definition(schedule.document)
        next_us = schedule.next_us
        if schedule.paused and next_us is not None:
            next_us = next_instant(self._understood(schedule, now_us).timing, now_us)
        return ScheduleView(
            schedule.name,
            _etag(schedule),
            msgspec.json.decode(schedule.document),
            schedule.actor,
            schedule.updated_us,
            definition.enabled,
            schedule.paused,
            schedule.paused_by,
            schedule.paused_us,
            next_us,
            schedule.look_us,
            schedule.waiting_us,
            schedule.last_us,
            schedule.last_outcome,
            schedule.last_reason,
            schedule.last_task_id,
            schedule.last_job_id,
        )


def _etag(schedule: Schedule) -> str:
    """The version, and what it says."""
    return f"{schedule.version}-{blake2b(schedule.document.encode(), digest_size=6).hexdigest()}"


def _check_expected(name: str, stored: Schedule | None, expected: str | None) -> None:
    if expected is None:
        return
    etag = None if stored is None else _etag(stored)
    if (etag is None) if expected == NONE else (etag is not None and expected in (ANY, etag)):
        return
    there = f"says something else now (etag {etag})" if etag is not None else "is not there"
    raise PreconditionFailed(
        f"schedule {name!r} {there}: read it again, then decide", what="schedule", id=name, etag=etag
    )


def _check_name_cursor(text: str) -> None:
    if len(text) > limits.NAME_MAX_CHARS or not text.isprintable():
        raise Malformed("this is no cursor of a page: begin again without one", field="cursor")


def _read_cursor(text: str) -> tuple[int, str]:
    instant, _, outcome = text.partition("-")
    if not instant.isascii() or not instant.isdigit() or len(instant) > 18 or not outcome.isalpha():
        raise Malformed("this is no cursor of a page: begin again without one", field="cursor")
    return int(instant), outcome


def _nothing(name: str) -> NotFound:
    return NotFound(f"there is no schedule {name!r}", what="schedule", id=name)


def _busy(name: str) -> StoreBusy:
    return StoreBusy(f"others changed schedule {name!r} again and again: try it once more", what="schedule", id=name)
