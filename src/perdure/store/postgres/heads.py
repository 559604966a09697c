"""The first tasks of several lanes together, by their places, before anything is locked."""

from collections import Counter
from collections.abc import Iterable, Sequence

from perdure.ambient import Clock
from perdure.store.postgres.grants import Fitting
from perdure.store.postgres.marks import Marks, Stretch
from perdure.store.postgres.transaction import Transaction
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

    def takes(self, tx: Transaction, fitting: Fitting, want: int) -> list[Take]:
        """How many to take of which stretch, so that these are the first `want` of all, in order.

        Where many lanes fit, one that was idle when they were last looked at may be passed over for a moment.
        """
        if len(fitting.rank) > LANES_MAX and self._monotonic_us() < fitting.look_at_all_us:
            takes, _ = self._first(tx, fitting, [lane for lane in fitting.rank if lane in fitting.busy], want)
            if sum(take[3] for take in takes) >= want:
                return takes
        begun_us = self._monotonic_us()
        takes, fitting.busy = self._first(tx, fitting, fitting.rank, want)
        ended_us = self._monotonic_us()
        fitting.look_at_all_us = ended_us + ALL_SHARE * (ended_us - begun_us)
        return takes

    def _first(self, tx: Transaction, fitting: Fitting, lanes: Iterable[int], want: int) -> tuple[list[Take], set[int]]:
        """What to take, and which of the lanes have tasks."""
        stretches = [(fitting.rank[lane], stretch) for lane in lanes for stretch in self._marks.stretches(lane)]
        first, busy = _first_of(tx, stretches, want)
        takes = [(*stretches[index][1], count, stretches[index][0]) for index, count in Counter(first).items()]
        return takes, {stretches[index][1][0] for index in busy}


def _first_of(tx: Transaction, stretches: Sequence[tuple[int, Stretch]], want: int) -> tuple[list[int], set[int]]:
    """The stretch of each of the first `want` entries of all, and which stretches have any; the lowest rank goes first.

    Of each stretch a few are read, and more only where those all belong to the first ones.
    """
    found: list[tuple[int, int, int]] = []
    busy: set[int] = set()
    begin = {index: stretch[1] for index, (_, stretch) in enumerate(stretches)}
    count = min(want, max(PAGE_MIN, 2 * want // max(1, len(stretches))))
    while begin:
        read = _read(tx, stretches, begin, count)
        busy.update(read)
        found += [(stretches[index][0], place, index) for index, places in read.items() for place in places]
        found.sort()
        del found[want:]
        begin = {
            index: places[-1] + 1
            for index, places in read.items()
            if len(places) == count and (len(found) < want or (stretches[index][0], places[-1], index) < found[-1])
        }
        count = want
    return [index for _, _, index in found], busy


def _read(
    tx: Transaction, stretches: Sequence[tuple[int, Stretch]], begin: dict[int, int], count: int
) -> dict[int, list[int]]:
    order = list(begin)
    asked = [(stretches[index][1][0], begin[index], stretches[index][1][2], count) for index in order]
    read: dict[int, list[int]] = {}
    for asked_place, place in tx.document("claim_heads", stretches=batch(asked)):
        read.setdefault(order[asked_place], []).append(place)
    return read
