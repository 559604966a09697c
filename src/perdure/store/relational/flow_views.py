"""Gates as they stand, page by page, and what is stopped.

A list of gates walks along the index of their names, one sort after the other. Those of one key are found name by name:
a kind has few limits, and each of them many keys.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

from perdure.domain import limits
from perdure.domain.breaker import BreakerState
from perdure.domain.gate import GateSort, WhenFull
from perdure.domain.states import TaskState
from perdure.errors import Malformed
from perdure.store.flow_views import COUNTED_MAX, SHOWN_MAX, GateFilter, GateView, PauseView, SlotView, WaiterView
from perdure.store.relational import breakers, cursors
from perdure.store.relational.listing import STRETCH_ROWS, page_rows
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.views import Page

_SORTS = tuple(sorted(GateSort))
_AFTER_SPACE = "!"
"""The character after the space that ends a kind in the name of a gate; no kind has any as low."""
_BEYOND_KEYS = "\U0010ffff"
"""A text above every key."""


class _Place(NamedTuple):
    """Where a walk begins: with the first gate that is not before this."""

    sort: str
    name: str
    key: str


class _Seen(NamedTuple):
    """A gate that the walk has met."""

    gate: int
    place: _Place
    waited: bool


class GateListing:
    """One page of the gates of a kind, by sort, name and key."""

    def __init__(self, organization: str, kind: str, where: GateFilter, limit: int, cursor: str | None) -> None:
        self._organization = organization
        self._kind = kind
        self._where = where
        self._limit = page_rows(limit)
        self._list = cursors.fingerprint(organization, kind, where)
        self._start = _Place(_SORTS[0], kind, "")
        self._next = None if cursor is None else cursors.read(cursor, "gates", self._list, int)

    def read(self, tx: Transaction) -> Page:
        """The page. It looks at no more than `limits.LIST_SCAN_MAX_ROWS` gates, so it may be short and have a next."""
        if self._next is not None:
            self._start = self._place_of(tx, self._next)
        shown: list[int] = []
        for looked, seen in enumerate(self._walk_keys(tx) if self._where.keys else self._walk(tx)):
            if len(shown) == self._limit or looked == limits.LIST_SCAN_MAX_ROWS:
                return Page(self._views(tx, shown), cursors.write("gates", self._list, seen.gate))
            if seen.waited or not self._where.waiting:
                shown.append(seen.gate)
        return Page(self._views(tx, shown), None)

    def _walk(self, tx: Transaction) -> Iterator[_Seen]:
        """All gates of the kind, from the start on."""
        for sort in _SORTS[_SORTS.index(self._start.sort) :]:
            found = self._stretch(tx, self._first(sort), STRETCH_ROWS)
            while len(found) == STRETCH_ROWS:
                # The last one is where the next stretch begins.
                yield from found[:-1]
                found = self._stretch(tx, found[-1].place, STRETCH_ROWS)
            yield from found

    def _walk_keys(self, tx: Transaction) -> Iterator[_Seen]:
        """Those of some keys, each looked for by itself at each name."""
        keys = sorted({*self._where.keys})
        for sort in _SORTS[_SORTS.index(self._start.sort) :]:
            place = self._first(sort)
            while there := self._stretch(tx, place, 1):
                name = there[0].place.name
                for key in keys:
                    if (name, key) >= place[1:]:
                        found = self._stretch(tx, _Place(sort, name, key), 1)
                        yield from (each for each in found if each.place[1:] == (name, key))
                place = _Place(sort, name, _BEYOND_KEYS)

    def _first(self, sort: str) -> _Place:
        return self._start if sort == self._start.sort else _Place(sort, self._kind, "")

    def _stretch(self, tx: Transaction, place: _Place, count: int) -> list[_Seen]:
        rows = tx.document(
            "view_walk_gates",
            organization=self._organization,
            sort=place.sort,
            name=place.name,
            key=place.key,
            beyond=self._kind + _AFTER_SPACE,
            stretch=count,
        )
        return [_Seen(gate, _Place(place.sort, name, key), bool(waited)) for gate, name, key, waited in rows]

    def _place_of(self, tx: Transaction, gate: int) -> _Place:
        rows = tx.document("view_gates", organization=self._organization, gates=batch([gate]), shown=0, most=0)
        if not rows:
            raise Malformed("the gate that was next is not used any more: begin again without a cursor", field="cursor")
        return _Place(*rows[0][:3])

    def _views(self, tx: Transaction, gates: list[int]) -> list[GateView]:
        if not gates:
            return []
        rows = tx.document(
            "view_gates", organization=self._organization, gates=batch(gates), shown=SHOWN_MAX, most=COUNTED_MAX
        )
        return [_view(row) for row in rows]


def _view(row: list[Any]) -> GateView:
    sort, name, key, slots, per_us, when_full, taken, waiting, holders, waiters = row
    return GateView(
        sort=GateSort(sort),
        name=name,
        key=key,
        slots=slots,
        per=None if per_us is None else limits.seconds(per_us),
        when_full=WhenFull(when_full),
        taken=taken,
        waiting=waiting,
        holders=tuple(_slot(*each) for each in holders),
        next=tuple(WaiterView(task=task, created_us=created_us) for task, created_us in waiters),
    )


def _slot(task: str | None, state: str | None, worker: str | None, since_us: int, free_us: int | None) -> SlotView:
    known = None if state is None else TaskState(state)
    return SlotView(task=task, state=known, worker=worker, since_us=since_us, free_us=free_us)


def pauses(tx: Transaction, organization: str) -> list[PauseView]:
    """What is stopped in an organization, what has been for longest first."""
    rows = tx.run("view_pauses", organization=organization, count=limits.LIST_MAX_ROWS)
    paused = [
        PauseView(type=type, name=name, state="paused", since_us=since_us, actor=actor)
        for type, name, since_us, actor in rows
    ]
    opened = [
        PauseView(
            type="breaker",
            name=each.kind,
            state=each.state,
            since_us=each.since_us or 0,
            until_us=each.until_us,
            actor=each.actor or "",
        )
        for each in breakers.breakers(tx, organization)
        if each.state is not BreakerState.CLOSED
    ]
    return sorted([*paused, *opened], key=lambda each: (each.since_us, each.type, each.name))
