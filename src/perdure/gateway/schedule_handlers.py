"""Handlers of schedules."""

from datetime import datetime

import msgspec

from perdure.engine.definitions import ANY
from perdure.engine.engine import Operations
from perdure.engine.schedule_definition import ScheduleDefinition
from perdure.engine.schedule_views import ScheduleView
from perdure.errors import Malformed, NotFound
from perdure.gateway.conditions import expected_of
from perdure.gateway.request import Answer, Request
from perdure.gateway.task_handlers import REPLAYED
from perdure.store.schedules import Made
from perdure.wire import schedules as bodies
from perdure.wire.shapes import EPOCH, instant, instant_us
from perdure.wire.telling import told


class ScheduleHandlers:
    """What is done with schedules."""

    def __init__(self, operations: Operations) -> None:
        self._schedules = operations.schedules

    async def list_schedules(self, request: Request) -> Answer:
        """List schedules by name."""
        query: bodies.ScheduleQuery = request.query
        page = await self._schedules.page(request.by, query.limit, query.cursor or None, query.set)
        shown = [told(each, bodies.Schedule) for each in page.schedules]
        return Answer(bodies.SchedulePage(schedules=shown, cursor=page.cursor))

    async def show_schedule(self, request: Request) -> Answer:
        """Show one schedule."""
        found = await self._schedules.get(_name(request), request.by)
        if found is None:
            raise _nothing(request)
        unless = request.conditions.if_none_match
        if unless is not None and unless in (ANY, found.etag):
            return Answer(None, 304, (_tag(found),))
        return _shown(found)

    async def put_schedule(self, request: Request) -> Answer:
        """Declare a schedule."""
        said = msgspec.json.decode(msgspec.json.encode(request.body), type=ScheduleDefinition)
        put = await self._schedules.put(_name(request), said, request.by, expected_of(request.conditions))
        return _shown(put)

    async def delete_schedule(self, request: Request) -> Answer:
        """Remove a schedule."""
        if request.conditions.if_none_match is not None:
            raise Malformed("a DELETE takes If-Match only", field="If-None-Match")
        if not await self._schedules.delete(_name(request), request.by, request.conditions.if_match):
            raise _nothing(request)
        return Answer(None, 204)

    async def pause_schedule(self, request: Request) -> Answer:
        """Let nothing come of a schedule."""
        return Answer(told(await self._schedules.pause(_name(request), request.by), bodies.Schedule))

    async def resume_schedule(self, request: Request) -> Answer:
        """Let a schedule go on."""
        return Answer(told(await self._schedules.resume(_name(request), request.by), bodies.Schedule))

    async def trigger_schedule(self, request: Request) -> Answer:
        """Let a schedule make its task or job now."""
        made = await self._schedules.trigger(_name(request), request.by, request.key)
        return Answer(_made(made), 200, (REPLAYED,)) if made.replayed else Answer(_made(made), 202)

    async def backfill_schedule(self, request: Request) -> Answer:
        """Let instants that have passed make what they did not."""
        body: bodies.Backfill = request.body
        start_us, end_us = _moment(body.start, "start"), _moment(body.end, "end")
        filled = await self._schedules.backfill(_name(request), start_us, end_us, request.by)
        return Answer(bodies.Backfilled(made=[_made(each) for each in filled.made]))

    async def preview_schedule(self, request: Request) -> Answer:
        """Show the next instants."""
        query: bodies.PreviewQuery = request.query
        after_us = None if query.after is None else _moment(query.after, "after")
        found = await self._schedules.preview(_name(request), query.count, request.by, after_us)
        return Answer(bodies.Instants(instants=[moment for each in found if (moment := instant(each)) is not None]))

    async def list_fires(self, request: Request) -> Answer:
        """Show what came of instants."""
        query: bodies.FireQuery = request.query
        page = await self._schedules.fires(_name(request), request.by, query.limit, query.cursor or None)
        return Answer(bodies.FirePage(fires=[told(each, bodies.Fire) for each in page.fires], cursor=page.cursor))


def _name(request: Request) -> str:
    return request.path["schedule"]


def _moment(moment: datetime, field: str) -> int:
    if moment.tzinfo is None:
        raise Malformed(f"{field} must have a time zone, as in 2026-12-24T18:00:00+01:00", field=field)
    return instant_us(moment) or 0


def _made(made: Made) -> bodies.MadeAtInstant:
    return bodies.MadeAtInstant(
        instant_at=instant(made.instant_us) or EPOCH,
        task_id=made.task_id,
        job_id=made.job_id,
        replayed=made.replayed,
        refusal=None if made.error is None else made.error.message,
    )


def _shown(view: ScheduleView) -> Answer:
    return Answer(told(view, bodies.Schedule), 201 if view.created else 200, (_tag(view),))


def _tag(view: ScheduleView) -> tuple[bytes, bytes]:
    return b"etag", f'"{view.etag}"'.encode()


def _nothing(request: Request) -> NotFound:
    name = _name(request)
    return NotFound(f"there is no schedule {name!r}", what="schedule", id=name)
