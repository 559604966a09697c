"""Schedules over HTTP. The gateway decides who acts; the principals given here are not sent."""

from typing import Any

import msgspec

from perdure.client.definitions import expecting
from perdure.client.transport import Repeat, Request, Transport
from perdure.client.views import quoted
from perdure.engine.names import check_key
from perdure.engine.requests import Principal
from perdure.engine.schedule_definition import definition_of, document_of
from perdure.engine.schedule_views import Backfilled, Definition, FirePage, SchedulePage, ScheduleView
from perdure.errors import Invalid, NotFound
from perdure.store.schedules import Fire, Made
from perdure.wire import schedules as bodies
from perdure.wire.shapes import instant, instant_us
from perdure.wire.telling import read


class RemoteSchedules:
    """Meets `ScheduleOperations`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def page(
        self, by: Principal, limit: int, cursor: str | None = None, of_set: str | None = None
    ) -> SchedulePage:
        """Schedules by name; only those of a declared set where that is named."""
        query: dict[str, Any] = {"limit": limit}
        query |= {} if cursor is None else {"cursor": cursor}
        query |= {} if of_set is None else {"set": of_set}
        answer = await self._transport.ask(Request("GET", "/v1/schedules", query=query), bodies.SchedulePage)
        return SchedulePage([read(each, ScheduleView) for each in answer.schedules], answer.cursor)

    async def get(self, name: str, by: Principal) -> ScheduleView | None:
        """One schedule, or `None`."""
        try:
            return await self._asked(Request("GET", _path(name)))
        except NotFound:
            return None

    async def put(self, name: str, definition: Definition, by: Principal, expected: str | None = None) -> ScheduleView:
        """Declare a schedule, whole. One that says so already is left as it is."""
        body = document_of(definition_of(definition)).encode()
        # The same again would meet its own first: with a tag, only what did not arrive is sent again.
        repeat = Repeat.ALWAYS if expected is None else Repeat.UNSENT
        return await self._asked(Request("PUT", _path(name), body, headers=expecting(expected), repeat=repeat))

    async def delete(self, name: str, by: Principal, expected: str | None = None) -> bool:
        """Remove a schedule; false when there was none."""
        request = Request("DELETE", _path(name), headers=expecting(expected), repeat=Repeat.UNSENT)
        try:
            await self._transport.ask(request, None)
        except NotFound:
            return False
        return True

    async def pause(self, name: str, by: Principal) -> ScheduleView:
        """Let nothing come of a schedule until it is resumed."""
        return await self._asked(Request("POST", f"{_path(name)}/pause"))

    async def resume(self, name: str, by: Principal) -> ScheduleView:
        """Let a schedule go on with its next instant."""
        return await self._asked(Request("POST", f"{_path(name)}/resume"))

    async def trigger(self, name: str, by: Principal, key: str | None = None) -> Made:
        """Let a schedule make its task or job now, once for each key."""
        repeat, headers = (Repeat.UNSENT, b"") if key is None else (Repeat.ALWAYS, _keyed(key))
        request = Request("POST", f"{_path(name)}/trigger", repeat=repeat, headers=headers)
        return _made(await self._transport.ask(request, bodies.MadeAtInstant))

    async def backfill(self, name: str, start_us: int, end_us: int, by: Principal) -> Backfilled:
        """Let the instants of a time that has passed make something."""
        said = bodies.Backfill(start=_moment(start_us, "start"), end=_moment(end_us, "end"))
        request = Request("POST", f"{_path(name)}/backfill", msgspec.json.encode(said))
        answer = await self._transport.ask(request, bodies.Backfilled)
        return Backfilled([_made(each) for each in answer.made])

    async def preview(self, name: str, count: int, by: Principal, after_us: int | None = None) -> list[int]:
        """The next instants of a schedule."""
        query: dict[str, Any] = {"count": count}
        query |= {} if after_us is None else {"after": _moment(after_us, "after").isoformat()}
        answer = await self._transport.ask(Request("GET", f"{_path(name)}/preview", query=query), bodies.Instants)
        return [instant_us(each) or 0 for each in answer.instants]

    async def fires(self, name: str, by: Principal, limit: int, cursor: str | None = None) -> FirePage:
        """What came of the instants of a schedule, the latest first."""
        query: dict[str, Any] = {"limit": limit}
        query |= {} if cursor is None else {"cursor": cursor}
        answer = await self._transport.ask(Request("GET", f"{_path(name)}/fires", query=query), bodies.FirePage)
        return FirePage([read(each, Fire) for each in answer.fires], answer.cursor)

    async def _asked(self, request: Request) -> ScheduleView:
        body, answer = await self._transport.ask_whole(request, bodies.Schedule)
        return read(body, ScheduleView, created=answer.status == 201)


def _keyed(key: str) -> bytes:
    """The header that says the key. Raises `Invalid`."""
    return b"idempotency-key: %s\r\n" % check_key(key).encode()


def _path(name: str) -> str:
    return f"/v1/schedules/{quoted(name)}"


def _moment(us: int, field: str) -> Any:
    try:
        return instant(us)
    except OverflowError:
        raise Invalid(f"{field} is no instant of our calendar", field=field) from None


def _made(body: bodies.MadeAtInstant) -> Made:
    error = None if body.refusal is None else Invalid(body.refusal)
    return Made(instant_us(body.instant_at) or 0, body.task_id, body.job_id, body.replayed, error)
