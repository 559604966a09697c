"""Where claims begin to look in each lane.

What was claimed leaves dead entries at the head of its lane's part of the index. They cost nothing where a claim begins
behind them, so this process remembers for each lane the last place that its last claim got. An entry may still show
below that mark: it was committed late, or a claim that had locked it was rolled back. The stretch below the marks is
looked over again and again for such entries, as often as it takes little of the time; the mark goes back to one that is
found.

Marks are hints: a process that has none yet finds the same tasks.
"""

from collections.abc import Collection, Iterable
from typing import Any

from perdure.ambient import Clock
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.transaction import batch

FRONT = -(2**62)
"""The least place in front."""
LINE = 0
"""Places in line are above, places in front below."""
LAST = 2**62

LATE_EVERY_US = 50_000
LATE_SHARE = 20
"""Looking below the marks takes at most one part in so many of the time."""

Stretch = tuple[int, int, int]
"""A part of a lane: its number, and the first and the last place."""


class Marks:
    """The marks of the lanes that this process has claimed from. Used by one thread at a time."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic_us = clock.monotonic_us
        self._front: dict[int, int] = {}
        self._line: dict[int, int] = {}
        self._look_again_us = 0

    def stretches(self, lane: int) -> tuple[Stretch, Stretch]:
        """Where a claim looks in a lane: what came back goes first."""
        return (lane, self._front.get(lane, FRONT), LINE - 1), (lane, self._line.get(lane, LINE), LAST)

    def advance(self, picked: Iterable[tuple[int, int]]) -> None:
        """Begin behind these entries (lane, place)."""
        last: dict[tuple[int, bool], int] = {}
        for lane, place in picked:
            key = lane, place < LINE
            last[key] = max(place, last.get(key, place))
        for (lane, front), place in last.items():
            (self._front if front else self._line)[lane] = place + 1

    def keep_only(self, lanes: Collection[int]) -> None:
        """Forget the marks of all other lanes."""
        self._front = {lane: mark for lane, mark in self._front.items() if lane in lanes}
        self._line = {lane: mark for lane, mark in self._line.items() if lane in lanes}

    def look_below(self, tx: Transaction, lanes: Collection[int]) -> None:
        """Take the marks of these lanes back to what is there below them, if it is time to look."""
        begun_us = self._monotonic_us()
        if begun_us < self._look_again_us:
            return
        below = [(lane, FRONT, mark) for lane in lanes if (mark := self._front.get(lane)) is not None]
        below += [(lane, LINE, mark) for lane in lanes if (mark := self._line.get(lane)) is not None]
        if not below:
            return
        found: list[list[Any]] = tx.document("claim_late", stretches=batch(below))
        for lane, place in found:
            (self._front if place < LINE else self._line)[lane] = place
        ended_us = self._monotonic_us()
        self._look_again_us = ended_us + max(LATE_EVERY_US, LATE_SHARE * (ended_us - begun_us))
