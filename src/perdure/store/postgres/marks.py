"""Where claims begin to look in each lane.

What was claimed leaves dead entries at the head of its lane's part of the index. They cost nothing where a claim begins
behind them, so this process remembers for each lane the last place that its last claim got. An entry may still show
below that mark: it was committed late, or a claim that had locked it was rolled back. The stretch below the marks is
looked over again and again for such entries, as often as it takes little of the time; the mark goes back to one that is
found.

Marks are hints: a process that has none yet finds the same tasks.
"""

from collections.abc import Collection, Iterable

from perdure.ambient import Clock
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.transaction import batch

FRONT = -(2**62)
"""The least place in front."""
LINE = 0
"""Places in line are above, places in front below."""
LAST = 2**62

LATE_EVERY_US = 200_000
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
        self.look_again_us = 0
        """When it is time to look below the marks."""
        self.looked_us = 0
        """When that was done last."""

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

    def below(self, lanes: Iterable[int]) -> list[Stretch]:
        """What lies below the marks of these lanes, if it is time to look there: for `claim_late`."""
        now_us = self._monotonic_us()
        if now_us < self.look_again_us:
            return []
        self.looked_us = now_us
        stretches = []
        for lane in lanes:
            for marks, first in ((self._front, FRONT), (self._line, LINE)):
                if lane in marks:
                    stretches.append((lane, first, marks[lane]))
        return stretches

    def looked(self, found: Iterable[tuple[int, int]], begun_us: int) -> None:
        """Take marks back to what `claim_late` has found (lane, place), which was asked at `begun_us`."""
        for lane, place in found:
            (self._front if place < LINE else self._line)[lane] = place
        ended_us = self._monotonic_us()
        self.looked_us = ended_us
        self.look_again_us = ended_us + max(LATE_EVERY_US, LATE_SHARE * (ended_us - begun_us))

    def look_below(self, tx: Transaction, lanes: Iterable[int]) -> None:
        """Take the marks of these lanes back to what is there below them, if it is time to look."""
        below = self.below(lanes)
        if below:
            begun_us = self._monotonic_us()
            self.looked(tx.document("claim_late", stretches=batch(below)), begun_us)
