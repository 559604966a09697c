"""`app.flow`: what a program says about what may start. Each call holds for the next claim of any process."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from perdure.engine.flow import FlowOperations
from perdure.store.definitions import DefinitionType
from perdure.store.flow_views import GateFilter, PauseView
from perdure.store.views import BreakerView, Page

if TYPE_CHECKING:
    from perdure.app.app import App


class Limits(TypedDict, total=False):
    """What may be limited. `None` lifts a limit; what is not said stays."""

    depth: int | None
    """How many tasks may wait."""
    concurrency: int | None
    """How many are held by workers at once."""
    rate: int | None
    """How many start in any stretch of `per` seconds (1 if that is not said)."""
    per: float | None
    weight: float | None
    """How large the organization's share is beside those of others; not of a queue."""


class AppFlow:
    """What may start in the app's organization."""

    def __init__(self, app: "App") -> None:
        self._app = app

    async def pause_queue(self, queue: str) -> None:
        """Let nothing of a queue start; what runs goes on, what is submitted waits."""
        await self._set_paused("queue", queue, True)

    async def resume_queue(self, queue: str) -> None:
        """Let the tasks of a paused queue start again."""
        await self._set_paused("queue", queue, False)

    async def pause_kind(self, kind: str) -> None:
        """Let no task of a kind start, in any queue, whatever its workers declare; what runs goes on."""
        await self._set_paused("kind", kind, True)

    async def resume_kind(self, kind: str) -> None:
        """Let the tasks of a paused kind start again."""
        await self._set_paused("kind", kind, False)

    async def pause_organization(self) -> None:
        """Let nothing of the organization start; what runs goes on."""
        await self._set_paused("organization", self._app.principal.organization, True)

    async def resume_organization(self) -> None:
        """Let the tasks of the paused organization start again."""
        await self._set_paused("organization", self._app.principal.organization, False)

    async def limit_queue(self, queue: str, **limits: Unpack[Limits]) -> Mapping[str, Any]:
        """Change the limits of a queue. Returns its policy. Raises `Invalid` with the field."""
        return await self._limit("queue", queue, limits)

    async def limit_organization(self, **limits: Unpack[Limits]) -> Mapping[str, Any]:
        """Change the limits of the organization, and its weight. Returns its policy. Raises `Invalid`."""
        return await self._limit("organization", self._app.principal.organization, limits)

    async def trip(self, kind: str, open_for: float | None = None) -> BreakerView:
        """Open the breaker of a kind for so many seconds, or as long as it says. Raises `NotFound`, `Invalid`."""
        return await (await self._operations()).trip(kind, self._app.principal, open_for)

    async def reset(self, kind: str) -> BreakerView:
        """Close the breaker of a kind. Raises `NotFound`, `Invalid`."""
        return await (await self._operations()).reset(kind, self._app.principal)

    async def breakers(self) -> Sequence[BreakerView]:
        """How the breakers of kinds stand."""
        return await (await self._app.operations()).views.breakers(self._app.principal.organization)

    async def gates(
        self, kind: str, *, key: str | None = None, waiting: bool = False, limit: int = 20, cursor: str | None = None
    ) -> Page:
        """How the gates of a kind's limits stand: who has their slots, how many tasks wait, who is next. `key`: only
        that of one value of the fields `by` which a limit holds; `waiting`: only those at which tasks wait. Go on with
        the page's `cursor`. Raises `NotFound`.
        """
        where = GateFilter(() if key is None else (key,), waiting)
        return await (await self._operations()).gates(kind, self._app.principal, where, limit, cursor)

    async def pauses(self) -> Sequence[PauseView]:
        """What is stopped, since when and by whom: what is paused, and breakers that are not closed."""
        return await (await self._operations()).pauses(self._app.principal)

    async def _set_paused(self, type: DefinitionType, name: str, paused: bool) -> None:
        operations = await self._operations()
        await (operations.pause if paused else operations.resume)(type, name, self._app.principal)

    async def _limit(self, type: DefinitionType, name: str, limits: Limits) -> Mapping[str, Any]:
        said: dict[str, Any] = dict(limits)
        return await (await self._operations()).limit(type, name, said, self._app.principal)

    async def _operations(self) -> FlowOperations:
        return (await self._app.operations()).flow


class SyncFlow:
    """The same for code without `await`: `app.sync.flow`."""

    def __init__(self, app: "App") -> None:
        self._app = app

    def pause_queue(self, queue: str) -> None:
        """See `AppFlow.pause_queue`."""
        self._app.sync.portal.call(self._app.flow.pause_queue, queue)

    def resume_queue(self, queue: str) -> None:
        """See `AppFlow.resume_queue`."""
        self._app.sync.portal.call(self._app.flow.resume_queue, queue)

    def pause_kind(self, kind: str) -> None:
        """See `AppFlow.pause_kind`."""
        self._app.sync.portal.call(self._app.flow.pause_kind, kind)

    def resume_kind(self, kind: str) -> None:
        """See `AppFlow.resume_kind`."""
        self._app.sync.portal.call(self._app.flow.resume_kind, kind)

    def pause_organization(self) -> None:
        """See `AppFlow.pause_organization`."""
        self._app.sync.portal.call(self._app.flow.pause_organization)

    def resume_organization(self) -> None:
        """See `AppFlow.resume_organization`."""
        self._app.sync.portal.call(self._app.flow.resume_organization)

    def limit_queue(self, queue: str, **limits: Unpack[Limits]) -> Mapping[str, Any]:
        """See `AppFlow.limit_queue`."""
        return self._app.sync.portal.call(self._app.flow.limit_queue, queue, **limits)

    def limit_organization(self, **limits: Unpack[Limits]) -> Mapping[str, Any]:
        """See `AppFlow.limit_organization`."""
        return self._app.sync.portal.call(self._app.flow.limit_organization, **limits)

    def trip(self, kind: str, open_for: float | None = None) -> BreakerView:
        """See `AppFlow.trip`."""
        return self._app.sync.portal.call(self._app.flow.trip, kind, open_for)

    def reset(self, kind: str) -> BreakerView:
        """See `AppFlow.reset`."""
        return self._app.sync.portal.call(self._app.flow.reset, kind)

    def breakers(self) -> Sequence[BreakerView]:
        """See `AppFlow.breakers`."""
        return self._app.sync.portal.call(self._app.flow.breakers)

    def gates(
        self, kind: str, *, key: str | None = None, waiting: bool = False, limit: int = 20, cursor: str | None = None
    ) -> Page:
        """See `AppFlow.gates`."""
        flow = self._app.flow
        return self._app.sync.portal.call(flow.gates, kind, key=key, waiting=waiting, limit=limit, cursor=cursor)

    def pauses(self) -> Sequence[PauseView]:
        """See `AppFlow.pauses`."""
        return self._app.sync.portal.call(self._app.flow.pauses)
