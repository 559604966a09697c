"""What operators do about what may start: pauses, limits, breakers; and what they see of gates."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Protocol

from perdure.domain import limits
from perdure.domain.breaker import Breaker, BreakerEvent, BreakerTurn
from perdure.engine.definitions import NONE, Document, Documents
from perdure.engine.kinds import Kind, Kinds, gate_keys
from perdure.engine.quantities import seconds_us
from perdure.engine.requests import Principal
from perdure.errors import Invalid, NotFound, PreconditionFailed
from perdure.store.breaker_ledger import BreakerLedger
from perdure.store.definitions import DefinitionType
from perdure.store.flow_views import GateFilter, PauseView
from perdure.store.views import BreakerView, Page, Views

ALL_GATES = GateFilter()
CHANGE_TRIES = 10
LIMITED: tuple[DefinitionType, ...] = ("queue", "organization")

_log = logging.getLogger("perdure.breakers")


class FlowOperations(Protocol):
    """What may start. `type` is `queue`, `organization` or `kind`. It holds for the next claim of any process."""

    async def pause(self, type: DefinitionType, name: str, by: Principal) -> None:
        """Let nothing of it start; what runs goes on."""

    async def resume(self, type: DefinitionType, name: str, by: Principal) -> None:
        """Let it start again."""

    async def limit(
        self, type: DefinitionType, name: str, changes: Mapping[str, float | None], by: Principal
    ) -> Mapping[str, Any]:
        """Change `depth`, `concurrency`, `rate`, `per` of a queue or an organization, or its `weight`: `None` lifts
        one, what is not said stays. Returns its policy. Raises `Invalid` with the field.
        """

    async def trip(self, kind: str, by: Principal, open_for: float | None = None) -> BreakerView:
        """Open the breaker of a kind for some seconds, or as long as it says. Raises as `reset` does."""

    async def reset(self, kind: str, by: Principal) -> BreakerView:
        """Close the breaker of a kind. Raises `NotFound`, and `Invalid` for a kind that has none."""

    async def gates(
        self, kind: str, by: Principal, where: GateFilter = ALL_GATES, limit: int = 20, cursor: str | None = None
    ) -> Page:
        """`GateView`s of the gates that tasks of a kind pass for its limits, by sort, name and key. A key may be said
        plainly too, `acme` for `"acme"`. Raises `NotFound`, `Invalid` for over 100 keys, `Malformed` for a bad cursor.
        """

    async def pauses(self, by: Principal) -> Sequence[PauseView]:
        """What is stopped, since when and by whom: what is paused, and breakers that are not closed."""


class FlowControl:
    """Meets `FlowOperations` on a store."""

    def __init__(self, ledger: BreakerLedger, views: Views, documents: Documents, kinds: Kinds) -> None:
        self._ledger = ledger
        self._views = views
        self._documents = documents
        self._kinds = kinds

    async def pause(self, type: DefinitionType, name: str, by: Principal) -> None:
        """See `FlowOperations`."""
        await self._change(type, name, {"paused": True}, by)

    async def resume(self, type: DefinitionType, name: str, by: Principal) -> None:
        """See `FlowOperations`."""
        await self._change(type, name, {"paused": False}, by)

    async def limit(
        self, type: DefinitionType, name: str, changes: Mapping[str, float | None], by: Principal
    ) -> Mapping[str, Any]:
        """See `FlowOperations`."""
        if type not in LIMITED:
            raise Invalid("limits of a kind are what its workers declare", field="type")
        return (await self._change(type, name, changes, by)).value

    async def trip(self, kind: str, by: Principal, open_for: float | None = None) -> BreakerView:
        """See `FlowOperations`."""
        breaker = await self._breaker(kind, by)
        open_us = seconds_us(open_for, "open_for", limits.BREAKER_OPEN_MIN_US, limits.BREAKER_OPEN_MAX_US)
        tell([await self._ledger.trip_breaker(by.organization, kind, open_us or breaker.open_us, by.name)])
        return await self._standing(kind, by)

    async def reset(self, kind: str, by: Principal) -> BreakerView:
        """See `FlowOperations`."""
        await self._breaker(kind, by)
        tell([await self._ledger.reset_breaker(by.organization, kind, by.name)])
        return await self._standing(kind, by)

    async def gates(
        self, kind: str, by: Principal, where: GateFilter = ALL_GATES, limit: int = 20, cursor: str | None = None
    ) -> Page:
        """See `FlowOperations`."""
        if len(where.keys) > limits.GATE_KEYS_MAX:
            raise Invalid(f"ask for {limits.GATE_KEYS_MAX} keys at most, not {len(where.keys)}", field="key")
        await self._known(kind, by)
        keys = tuple(spelling for key in where.keys for spelling in gate_keys(key))
        return await self._views.gates(by.organization, kind, where._replace(keys=keys), limit, cursor)

    async def pauses(self, by: Principal) -> Sequence[PauseView]:
        """See `FlowOperations`."""
        return await self._views.pauses(by.organization)

    async def _breaker(self, kind: str, by: Principal) -> Breaker:
        known = await self._known(kind, by)
        if known.defaults.breaker is None:
            raise Invalid(f"kind {kind!r} has no breaker: pause it, or declare one with it", field="kind")
        return known.defaults.breaker

    async def _known(self, kind: str, by: Principal) -> Kind:
        await self._kinds.refresh(by.organization)
        known = (await self._kinds.of(by.organization)).get(kind)
        if known is None:
            raise NotFound(f"there is no kind {kind}", what="kind", id=kind)
        return known

    async def _standing(self, kind: str, by: Principal) -> BreakerView:
        found = [each for each in await self._views.breakers(by.organization) if each.kind == kind]
        if not found:
            raise NotFound(f"kind {kind} has no breaker any more", what="kind", id=kind)
        return found[0]

    async def _change(self, type: DefinitionType, name: str, changes: Mapping[str, Any], by: Principal) -> Document:
        for tries_left in reversed(range(CHANGE_TRIES)):
            before = await self._documents.get(type, name, by)
            said = before.value if before is not None else {}
            expected = before.etag if before is not None else NONE
            try:
                return await self._documents.put(type, name, {**said, **changes}, by, expected)
            except PreconditionFailed:
                # Somebody else has changed it meanwhile: these changes go on top.
                if not tries_left:
                    raise
        raise AssertionError("the last try returns or raises")


def tell(turns: Iterable[BreakerTurn | None]) -> Sequence[BreakerTurn]:
    """Write the log line of each breaker that has changed. Returns those."""
    changed = [turn for turn in turns if turn is not None]
    for turn in changed:
        level = logging.INFO if turn.until_us is None else logging.WARNING
        facts = {"organization": turn.organization, "kind": turn.kind, "state": turn.state, "event": turn.event}
        _log.log(level, "%s", _line(turn), extra={"facts": facts})
    return changed


def _line(turn: BreakerTurn) -> str:
    head = f"breaker of kind {turn.kind!r} (organization {turn.organization})"
    attempts, failures = turn.counted
    if turn.until_us is None:
        why = f"{attempts} of {attempts} probes succeeded" if turn.event is BreakerEvent.PROBES_PASSED else "by hand"
        return f"{head} closed, {why}: its tasks start again"
    why = {
        BreakerEvent.TOO_MANY_FAILED: f"{failures} of {attempts} attempts failed",
        BreakerEvent.PROBE_FAILED: f"{failures} of {attempts} probes failed",
    }.get(turn.event, "by hand")
    again = "again" if turn.event is BreakerEvent.PROBE_FAILED else ""
    until = datetime.fromtimestamp(turn.until_us / limits.SECOND_US, UTC).isoformat(timespec="seconds")
    return f"{head} opened {again}".rstrip() + (
        f", {why}: none of its tasks starts before {until}, then probes do;"
        f" `perdure kind show {turn.kind}` tells how it stands, `perdure kind reset {turn.kind}` closes it"
    )
