"""The first tasks of several lanes together, before anything is locked: organizations take turns, then by place."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from perdure.ambient import Clock
from perdure.domain.fair_share import Before, Line, Shares, Turns
from perdure.store.postgres.grants import Fitting
from perdure.store.postgres.marks import Marks, Stretch
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.flow import UNLIMITED, Rooms
from perdure.store.relational.transaction import batch

PAGE_MIN = 4
"""At least so many entries of each stretch are read at a time."""
LANES_MAX = 64
"""Where more lanes fit, most claims look only at those that had tasks when all of them were last looked at."""
ALL_SHARE = 10
"""Looking at all of many lanes takes at most one part in so many of the time, where others have enough to do."""

Take = tuple[int, int, int, int, int]
"""A stretch of a lane, how many to take of it at most, and its order: the lowest first."""


class Heads:
    """Looks at the heads of lanes. Used by one thread at a time."""

    def __init__(self, clock: Clock, marks: Marks) -> None:
        self._monotonic_us = clock.monotonic_us
        self._marks = marks
        self._shares = Shares()
        self._claim: Transaction | None = None
        self._unsure: list[Before] = []
        """How it was before each turn of a claim that has not committed."""

    def takes(self, tx: Transaction, fitting: Fitting, want: int, rooms: Rooms = UNLIMITED) -> list[Take]:
        """How many to take of which stretch, so that these are the first `want` of all that have room, in order.

        Where many lanes fit, one that was idle when they were last looked at may be passed over for a moment.
        """
        self._undo_all_but(tx)
        if len(fitting.rank) > LANES_MAX and self._monotonic_us() < fitting.look_at_all_us:
            busy = [lane for lane in fitting.rank if lane in fitting.busy]
            takes, _ = self._first(tx, fitting, busy, want, rooms)
            if sum(take[3] for take in takes) >= want:
                return takes
        begun_us = self._monotonic_us()
        takes, fitting.busy = self._first(tx, fitting, fitting.rank, want, rooms)
        ended_us = self._monotonic_us()
        fitting.look_at_all_us = ended_us + ALL_SHARE * (ended_us - begun_us)
        return takes

    def _undo_all_but(self, tx: Transaction) -> None:
        """Turns of an earlier transaction that was undone were not taken: what collides is run again as another one."""
        if tx is self._claim:
            return
        while self._unsure:
            self._shares.undo(self._unsure.pop())
        self._claim = tx
        tx.after_commit(self._unsure.clear)

    def _first(
        self, tx: Transaction, fitting: Fitting, lanes: Iterable[int], want: int, rooms: Rooms
    ) -> tuple[list[Take], set[int]]:
        """What to take, and which of the lanes have tasks."""
        stretches = [(fitting.rank[lane], stretch) for lane in lanes for stretch in self._marks.stretches(lane)]
        first, busy = self._first_of(tx, fitting, stretches, want, rooms)
        takes = [(*stretches[index][1], count, stretches[index][0]) for index, count in Counter(first).items()]
        return takes, {stretches[index][1][0] for index in busy}

    def _first_of(
        self, tx: Transaction, fitting: Fitting, stretches: Sequence[tuple[int, Stretch]], want: int, rooms: Rooms
    ) -> tuple[list[int], set[int]]:
        """The stretch of each of the first `want` entries, and which stretches have any; the lowest rank goes first.

        Of each stretch a few are read, and more only where those all belong to the first ones.
        """
        found: dict[int, list[int]] = {}
        begin = {index: stretch[1] for index, (_, stretch) in enumerate(stretches) if rooms.has(stretch[0])}
        count = min(want, max(PAGE_MIN, 2 * want // max(1, len(stretches))))
        chosen = _Choice([], {})
        while begin:
            read = _read(tx, stretches, begin, count)
            for index, places in read.items():
                found.setdefault(index, []).extend(places)
            chosen = self._choose(fitting, stretches, found, want, rooms)
            used = Counter(chosen.stretches)
            begin = {
                index: places[-1] + 1
                for index, places in read.items()
                if len(places) == count and used[index] == len(found[index])
            }
            count = want
        for priority, turns in chosen.turns.items():
            self._unsure.append(self._shares.keep(priority, turns))
        return chosen.stretches, set(found)

    def _choose(
        self,
        fitting: Fitting,
        stretches: Sequence[tuple[int, Stretch]],
        found: Mapping[int, Sequence[int]],
        want: int,
        rooms: Rooms,
    ) -> "_Choice":
        """The first ones of what was found: priorities one after the other, organizations by turns, then by place."""
        rooms = rooms.copy()
        choice = _Choice([], {})
        for rank, band in groupby(sorted(found, key=lambda index: stretches[index][0]), lambda i: stretches[i][0]):
            lines: dict[str, list[tuple[int, int]]] = {}
            for index in band:
                organization = fitting.lanes[stretches[index][1][0]].organization
                lines.setdefault(organization, []).extend((place, index) for place in found[index])
            left = want - len(choice.stretches)
            ordered = {name: sorted(line) for name, line in lines.items()}
            roomy = {name: _with_room(places, stretches, rooms) for name, places in ordered.items()}
            if len(roomy) == 1:
                (line,) = roomy.values()
                choice.stretches.extend(islice(line, left))
            elif left:
                waiting = {name: Line(ordered[name][0][0], each) for name, each in roomy.items()}
                turns = self._shares.turns(fitting.priority(rank), waiting, left, fitting.flow.weight)
                choice.turns[fitting.priority(rank)] = turns
                choice.stretches.extend(turns.picked)
        return choice


class _Choice(NamedTuple):
    """Stretches of what is to be taken, in order, and the turns of organizations by priority."""

    stretches: list[int]
    turns: dict[int, Turns[int]]


def _with_room(
    line: Iterable[tuple[int, int]], stretches: Sequence[tuple[int, Stretch]], rooms: Rooms
) -> Iterator[int]:
    """The stretches of a line's tasks that have room, in order."""
    for _, index in line:
        lane = stretches[index][1][0]
        if rooms.has(lane):
            rooms.take(lane)
            yield index


def _read(
    tx: Transaction, stretches: Sequence[tuple[int, Stretch]], begin: dict[int, int], count: int
) -> dict[int, list[int]]:
    order = list(begin)
    asked = [(stretches[index][1][0], begin[index], stretches[index][1][2], count) for index in order]
    read: dict[int, list[int]] = {}
    for asked_place, place in tx.document("claim_heads", stretches=batch(asked)):
        read.setdefault(order[asked_place], []).append(place)
    return read
