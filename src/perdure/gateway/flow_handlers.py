"""Handlers about what may start: pauses, limits and breakers."""

from typing import Any

import msgspec

from perdure import wire
from perdure.engine.engine import Operations
from perdure.errors import NotFound
from perdure.gateway.operating_handlers import queue_name, shown_kind
from perdure.gateway.request import Answer, Request
from perdure.store.definitions import DefinitionType
from perdure.store.flow_views import GateFilter
from perdure.store.views import BreakerView
from perdure.wire.telling import told, told_gate


class FlowHandlers:
    """What operators do about what may start."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._flow = operations.flow

    async def show_kind(self, request: Request) -> Answer:
        """Show a kind."""
        name = request.path["kind"]
        known = [each for each in await self._operations.kinds(request.by) if each.name == name]
        if not known:
            raise NotFound(f"there is no kind {name}", what="kind", id=name)
        breakers = await self._operations.views.breakers(request.by.organization)
        breaker = [_breaker(each) for each in breakers if each.kind == name]
        return Answer(wire.KindShown(kind=shown_kind(known[0]), breaker=breaker[0] if breaker else None))

    async def list_breakers(self, request: Request) -> Answer:
        """List breakers."""
        found = await self._operations.views.breakers(request.by.organization)
        return Answer(wire.Breakers(breakers=[_breaker(each) for each in found]))

    async def list_gates(self, request: Request) -> Answer:
        """List the gates of a kind."""
        query: wire.GateQuery = request.query
        where = GateFilter(tuple(query.key), query.waiting)
        page = await self._flow.gates(request.path["kind"], request.by, where, query.limit, query.cursor or None)
        return Answer(wire.Gates(gates=[told_gate(each) for each in page.rows], cursor=page.cursor))

    async def list_pauses(self, request: Request) -> Answer:
        """List what is stopped."""
        found = await self._flow.pauses(request.by)
        return Answer(wire.Pauses(pauses=[told(each, wire.Pause) for each in found]))

    async def pause_kind(self, request: Request) -> Answer:
        """Claim nothing of a kind."""
        await self._flow.pause("kind", request.path["kind"], request.by)
        return Answer(wire.KindChanged(name=request.path["kind"]))

    async def resume_kind(self, request: Request) -> Answer:
        """Let a kind be claimed again."""
        await self._flow.resume("kind", request.path["kind"], request.by)
        return Answer(wire.KindChanged(name=request.path["kind"]))

    async def trip_kind(self, request: Request) -> Answer:
        """Open a breaker."""
        body: wire.TripBreaker = request.body
        return Answer(_breaker(await self._flow.trip(request.path["kind"], request.by, body.open_for)))

    async def reset_kind(self, request: Request) -> Answer:
        """Close a breaker."""
        return Answer(_breaker(await self._flow.reset(request.path["kind"], request.by)))

    async def pause_organization(self, request: Request) -> Answer:
        """Claim nothing of the organization."""
        await self._flow.pause("organization", request.path["organization"], request.by)
        return await self._organization(request)

    async def resume_organization(self, request: Request) -> Answer:
        """Let the organization be claimed again."""
        await self._flow.resume("organization", request.path["organization"], request.by)
        return await self._organization(request)

    async def limit_queue(self, request: Request) -> Answer:
        """Change a queue's limits."""
        return await self._limit(request, "queue", queue_name(request), wire.QueueDocument)

    async def limit_organization(self, request: Request) -> Answer:
        """Change the organization's limits."""
        return await self._limit(request, "organization", request.path["organization"], wire.OrganizationDocument)

    async def _limit(self, request: Request, type: DefinitionType, name: str, shown: Any) -> Answer:
        changes = msgspec.to_builtins(request.body)
        return Answer(msgspec.convert(dict(await self._flow.limit(type, name, changes, request.by)), shown))

    async def _organization(self, request: Request) -> Answer:
        found = await self._operations.definition("organization", request.path["organization"], request.by)
        return Answer(msgspec.convert(found.value if found is not None else {}, wire.OrganizationDocument))


def _breaker(view: BreakerView) -> wire.KindBreaker:
    return told(view, wire.KindBreaker)
