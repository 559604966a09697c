"""The gateway: an ASGI application made from the table of routes.

A bare ASGI callable, because a framework's request, response and routing cost more than all of a submit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, NamedTuple

from perdure.ambient import Clock, Ids
from perdure.domain.limits import SECOND_US, WORKER_ACTIVE_DEFAULT_US, seconds
from perdure.engine.engine import Operations
from perdure.engine.requests import Principal
from perdure.gateway import problems
from perdure.gateway.access import Access
from perdure.gateway.claim_pool import ClaimPool
from perdure.gateway.conditions import NO_CONDITIONS, conditions_of
from perdure.gateway.definition_handlers import DefinitionHandlers
from perdure.gateway.docs_page import docs_page
from perdure.gateway.flow_handlers import FlowHandlers
from perdure.gateway.hints import Hints
from perdure.gateway.job_handlers import JobHandlers
from perdure.gateway.limits import GatewayLimits
from perdure.gateway.matching_handlers import MatchingHandlers
from perdure.gateway.openapi import describe
from perdure.gateway.operating_handlers import OperatingHandlers, Told
from perdure.gateway.paths import Match, Paths
from perdure.gateway.presence import Presence
from perdure.gateway.rates import Rates
from perdure.gateway.readiness import Proof, Readiness
from perdure.gateway.request import (
    Answer,
    ClientGone,
    Headers,
    Reading,
    Receive,
    Request,
    Send,
    encode,
    idempotency_key,
    traceparent,
)
from perdure.gateway.route import Route
from perdure.gateway.routes import ROUTES
from perdure.gateway.schedule_handlers import ScheduleHandlers
from perdure.gateway.system_handlers import Notices, Render, SystemHandlers
from perdure.gateway.task_handlers import TaskHandlers
from perdure.gateway.turns import Turn, Turns, cost_of
from perdure.gateway.worker_handlers import WorkerHandlers
from perdure.telemetry.observer import Observer

Handler = Callable[[Request], Awaitable[Answer]]
Scope = Mapping[str, Any]

ALWAYS: Headers = [(b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
WORKERS_NOTED = "workers"
"""The condition for being ready that the signs of those who wait are written."""
UNMATCHED = "unmatched"
"""What a request that met no route is counted as."""


class Surroundings(NamedTuple):
    """What a gateway is handed."""

    operations: Operations
    access: Access
    principal: Principal
    """Who asks for the gateway itself: for its probe of the store."""
    limits: GatewayLimits
    observer: Observer
    metrics: Render
    notices: Notices
    """What whoever runs the store should know of, though it works."""
    of_itself: Told
    clock: Clock
    ids: Ids
    worker_active: float = seconds(WORKER_ACTIVE_DEFAULT_US)
    """How long after its last sign a worker counts as alive: the gateway writes signs accordingly."""
    prove_writes: Proof | None = None
    """What says whether new work can be written, after some was refused; see `Store.prove_writes`."""


class _Endpoint(NamedTuple):
    route: Route
    reading: Reading
    handler: Handler
    content_type: tuple[bytes, bytes]


class _Sent(NamedTuple):
    """An answer as it goes out."""

    route: str
    status: int
    headers: Headers
    body: bytes
    close: bool = False


class Gateway:
    """Answers HTTP. `async with gateway:` for as long as it serves; it owns neither store nor listener."""

    def __init__(self, around: Surroundings, routes: Sequence[Route] = ROUTES) -> None:
        operations = around.operations
        # Of a task and a worker that nobody knows: neither finds or changes anything.
        nobody = around.ids.new()
        self.readiness = Readiness(
            {
                "reads": lambda: operations.views.ended(around.principal.organization, [nobody]),
                "writes": lambda: operations.heartbeat(nobody, 1),
            },
            around.clock,
            {"writes": around.prove_writes} if around.prove_writes is not None else {},
        )
        self._hints = Hints(operations.subscribe, around.ids.new())
        registry: Any = operations
        self._presence = Presence(registry, self._hints, around.worker_active, self._noted_workers)
        self._pool = ClaimPool(operations, self._presence)
        self._access = around.access
        self._turns = Turns()
        self._rates = Rates(around.limits.client_rate, lambda: around.clock.monotonic_us() / SECOND_US)
        self._observer = around.observer
        self._clock = around.clock
        self._ids = around.ids
        description = describe(around.of_itself.version)
        groups = (
            TaskHandlers(operations),
            JobHandlers(operations),
            OperatingHandlers(operations, around.of_itself),
            MatchingHandlers(operations),
            DefinitionHandlers(operations),
            FlowHandlers(operations),
            ScheduleHandlers(operations),
            WorkerHandlers(operations, self._pool, self._hints, self._presence),
            SystemHandlers(self.readiness, around.notices, around.metrics, description, docs_page(description)),
        )
        self._paths = Paths((route.method, route.path, _endpoint(route, groups, around.limits)) for route in routes)

    async def __aenter__(self) -> "Gateway":
        self._hints.start()
        self._presence.start()
        self.readiness.expect(WORKERS_NOTED)
        self._pool.start()
        self.readiness.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    def _noted_workers(self) -> None:
        self.readiness.succeeded(WORKERS_NOTED)

    async def close(self) -> None:
        """Answer everybody who waits, and wait for nothing any more. Harmless when closed already."""
        await self._pool.stop()
        await self._presence.stop()
        await self._hints.stop()
        await self.readiness.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._answer(scope, receive, send)
        elif scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await self.__aenter__()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.close()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began_us = self._clock.monotonic_us()
        try:
            sent = await self._sent(scope, receive)
        except ClientGone:
            return
        if self._pool.answering:
            # What this request has stored goes to a worker that waits: that one begins first.
            await asyncio.sleep(0)
        headers = [*ALWAYS, *sent.headers]
        if sent.status not in (204, 304):
            headers.append((b"content-length", b"%d" % len(sent.body)))
        if sent.close:
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": sent.status, "headers": headers})
        await send({"type": "http.response.body", "body": sent.body})
        self._observer.answered(sent.route, sent.status, (self._clock.monotonic_us() - began_us) / SECOND_US)

    async def _sent(self, scope: Scope, receive: Receive) -> _Sent:
        name, read = UNMATCHED, _Read(receive)
        try:
            match = self._paths.find(scope["method"], _path(scope))
            name = match.target.route.name
            return await self._handled(match, scope, read)
        except (ClientGone, asyncio.CancelledError):
            raise
        except Exception as error:
            if scope["method"] != "GET":
                self.readiness.refused("writes", error)
            told = problems.tell(error, self._ids.new())
            self._observer.refused(told.members["code"])
            return _Sent(
                name, told.status, told.headers, encode(told.members), close=not read.whole and _has_body(scope)
            )

    async def _handled(self, match: "Match[_Endpoint]", scope: Scope, receive: "_Read") -> _Sent:
        route, reading, handler, content_type = match.target
        headers = dict(scope["headers"])
        by = self._access.authenticate(scope)
        self._access.authorize(by, route.permission)
        query = reading.query(scope["query_string"])
        key = idempotency_key(route, headers)
        client = self._access.client(scope, by)
        self._turns.note(client)
        if route.in_turn:
            self._rates.take(client)
        data = await reading.received(headers, receive)
        conditions = conditions_of(headers) if route.conditional else NO_CONDITIONS
        turn = Turn(self._turns, client) if route.in_turn else None
        try:
            if turn is not None:
                await turn.take(cost_of(data, query))
            body = reading.body(headers, data)
            trace = traceparent(route, headers)
            answer = await handler(Request(by, match.variables, query, body, key, receive, conditions, trace, turn))
            for refused in answer.refused:
                self.readiness.refused("writes", refused)
            shown = answer.body
            if shown is None:
                return _Sent(route.name, answer.status, [*answer.headers], b"")
            told = shown if isinstance(shown, bytes) else encode(shown)
            return _Sent(route.name, answer.status, [content_type, *answer.headers], told)
        finally:
            if turn is not None:
                turn.give()


class _Read:
    """`receive` that knows whether the request has been read to its end."""

    __slots__ = ("_receive", "whole")

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self.whole = False

    async def __call__(self) -> Any:
        message = await self._receive()
        if not message.get("more_body", False):
            self.whole = True
        return message


def _endpoint(route: Route, groups: tuple[object, ...], limits: GatewayLimits) -> _Endpoint:
    handler = next(getattr(group, route.name) for group in groups if hasattr(group, route.name))
    return _Endpoint(route, Reading(route, limits), handler, (b"content-type", route.media.encode()))


def _has_body(scope: Scope) -> bool:
    headers = dict(scope["headers"])
    return headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers


def _path(scope: Scope) -> str:
    """The path below where the gateway is mounted, as it came, escapes and all."""
    raw = scope.get("raw_path")
    path: str = raw.split(b"?")[0].decode("ascii", "replace") if raw else scope["path"]
    root: str = scope.get("root_path", "")
    return path.removeprefix(root) if root else path
