"""What may start, over HTTP: pauses, limits and breakers. The gateway decides who acts."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from perdure import wire
from perdure.client.transport import Request, Transport
from perdure.client.views import RemoteViews, quoted
from perdure.engine.definitions import TYPES
from perdure.engine.flow import ALL_GATES, LIMITED
from perdure.engine.requests import Principal
from perdure.errors import Invalid
from perdure.store.definitions import DefinitionType
from perdure.store.flow_views import GateFilter, PauseView
from perdure.store.views import BreakerView, Page
from perdure.wire.telling import read


class RemoteFlow:
    """Meets `FlowOperations`."""

    def __init__(self, transport: Transport, views: RemoteViews) -> None:
        self._transport = transport
        self._views = views

    async def pause(self, type: DefinitionType, name: str, by: Principal) -> None:
        """See `FlowOperations`."""
        await self._transport.ask(Request("POST", f"{_path(type, name)}/pause"), None)

    async def resume(self, type: DefinitionType, name: str, by: Principal) -> None:
        """See `FlowOperations`."""
        await self._transport.ask(Request("POST", f"{_path(type, name)}/resume"), None)

    async def limit(
        self, type: DefinitionType, name: str, changes: Mapping[str, float | None], by: Principal
    ) -> Mapping[str, Any]:
        """See `FlowOperations`."""
        if type not in LIMITED:
            raise Invalid("limits of a kind are what its workers declare", field="type")
        request = Request("PATCH", f"{_path(type, name)}/limits", msgspec.json.encode(changes))
        policy: dict[str, Any] = await self._transport.ask(request, dict[str, Any])
        return policy

    async def trip(self, kind: str, by: Principal, open_for: float | None = None) -> BreakerView:
        """See `FlowOperations`."""
        body = msgspec.json.encode(wire.TripBreaker(open_for=open_for))
        return await self._turned(Request("POST", f"{_path('kind', kind)}/trip", body))

    async def reset(self, kind: str, by: Principal) -> BreakerView:
        """See `FlowOperations`."""
        return await self._turned(Request("POST", f"{_path('kind', kind)}/reset"))

    async def gates(
        self, kind: str, by: Principal, where: GateFilter = ALL_GATES, limit: int = 20, cursor: str | None = None
    ) -> Page:
        """See `FlowOperations`."""
        return await self._views.gates(by.organization, kind, where, limit, cursor)

    async def pauses(self, by: Principal) -> Sequence[PauseView]:
        """See `FlowOperations`."""
        return await self._views.pauses(by.organization)

    async def _turned(self, request: Request) -> BreakerView:
        return read(await self._transport.ask(request, wire.KindBreaker), BreakerView)


def _path(type: DefinitionType, name: str) -> str:
    if type not in TYPES:
        raise Invalid(f"this is of a {', a '.join(TYPES)}, not of a {type!r}", field="type")
    return f"/v1/{type}s/{quoted(name)}"
