"""Where questions begin to look for the first task of a lane.

A question takes nothing and locks nothing, so the first task that it sees was the first one there, and what is queued
later goes behind it. The next question begins at that place, and not at what lies dead before it. An entry shows below
only where its transaction committed late: a look from the beginning finds it.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from perdure.store.postgres.whole_looks import SETTLED_US, WholeLooks
from perdure.store.relational.transaction import Transaction, batch

KNOWN_MAX = 10_000
"""So many lanes are remembered. Where there are more, all are forgotten now and then."""

Head = tuple[int, int | None, int | None]
"""A lane, and the places of its first task in front and of its first one in line."""
_Places = tuple[int | None, int | None]


class _Answer(msgspec.Struct):
    heads: list[Head]


class _Seen(NamedTuple):
    places: _Places
    at_us: int


_decode = msgspec.json.Decoder(_Answer).decode


class Sightings:
    """The first tasks that questions of one process have seen. From any thread."""

    def __init__(self, monotonic_us: Callable[[], int]) -> None:
        self._monotonic_us = monotonic_us
        self._whole = WholeLooks(monotonic_us)
        self._guard = threading.Lock()
        self._marks: dict[int, _Places] = {}
        self._seen: dict[int, _Seen] = {}
        """What becomes the mark of a lane next."""

    def ask(self, tx: Transaction, name: str, /, **bindings: Any) -> str:
        """The JSON document that a statement answers with which takes `marks` and tells the `heads` it has seen."""
        begun_us = self._monotonic_us()
        whole = self._whole.is_time
        text: str = tx.value(name, marks=batch({} if whole else self._begin()), **bindings)
        if whole:
            self._whole.looked(begun_us, self._monotonic_us())
        self._remember(_decode(text).heads, whole)
        return text

    def _begin(self) -> Mapping[int, _Places]:
        with self._guard:
            return dict(self._marks)

    def _remember(self, heads: Iterable[Head], whole: bool) -> None:
        now_us = self._monotonic_us()
        with self._guard:
            if len(self._marks) > KNOWN_MAX:
                self._marks.clear()
                self._seen.clear()
            for lane, *found in heads:
                self._see(lane, found, whole, now_us)

    def _see(self, lane: int, found: Sequence[int | None], whole: bool, now_us: int) -> None:
        seen = self._seen.get(lane)
        if seen is None:
            self._seen[lane] = _Seen((found[0], found[1]), now_us)
            return
        places = _known(found[0], seen.places[0]), _known(found[1], seen.places[1])
        if whole and lane in self._marks:
            mark = self._marks[lane]
            self._marks[lane] = _lower(found[0], mark[0]), _lower(found[1], mark[1])
        if _lower(places[0], seen.places[0]) != seen.places[0] or _lower(places[1], seen.places[1]) != seen.places[1]:
            # It was committed late. Others may be just as late.
            self._seen[lane] = _Seen(places, now_us)
        elif now_us - seen.at_us >= SETTLED_US:
            self._marks[lane] = seen.places
            self._seen[lane] = _Seen(places, now_us)


def _known(found: int | None, before: int | None) -> int | None:
    return before if found is None else found


def _lower(found: int | None, mark: int | None) -> int | None:
    return mark if found is None or mark is None else min(found, mark)
