"""The first tasks of several lanes together, by their places, before anything is locked."""

from collections.abc import Sequence

from perdure.store.postgres.marks import Stretch
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.transaction import batch

PAGE_MIN = 4
"""At least so many entries of each stretch are read at a time."""


def first_of(tx: Transaction, stretches: Sequence[tuple[int, Stretch]], want: int) -> list[tuple[int, int]]:
    """The first `want` entries of stretches, each with its rank (the lowest goes first): index of the stretch, place.

    Of each stretch a few are read, and more only where those all belong to the first ones.
    """
    found: list[tuple[int, int, int]] = []
    begin = {index: stretch[1] for index, (_, stretch) in enumerate(stretches)}
    count = min(want, max(PAGE_MIN, 2 * want // max(1, len(stretches))))
    while begin:
        read = _read(tx, stretches, begin, count)
        found += [(stretches[index][0], place, index) for index, places in read.items() for place in places]
        found.sort()
        del found[want:]
        begin = {
            index: places[-1] + 1
            for index, places in read.items()
            if len(places) == count and (len(found) < want or (stretches[index][0], places[-1], index) < found[-1])
        }
        count = want
    return [(index, place) for _, place, index in found]


def _read(
    tx: Transaction, stretches: Sequence[tuple[int, Stretch]], begin: dict[int, int], count: int
) -> dict[int, list[int]]:
    order = list(begin)
    asked = [(stretches[index][1][0], begin[index], stretches[index][1][2], count) for index in order]
    read: dict[int, list[int]] = {}
    for asked_place, place in tx.document("claim_heads", stretches=batch(asked)):
        read.setdefault(order[asked_place], []).append(place)
    return read
