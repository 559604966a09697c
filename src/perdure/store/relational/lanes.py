"""Lanes: the numbers of (organization, queue, kind, capability set, priority), and what a number stands for."""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from perdure.domain.limits import SECOND_US
from perdure.domain.task import Terms
from perdure.store.relational.transaction import Transaction, batch

TRUSTED_US = 600 * SECOND_US
KEPT_US = 24 * 3600 * SECOND_US


class Lane(NamedTuple):
    """What a claim chooses."""

    organization: str
    queue: str
    kind: str
    capabilities: tuple[str, ...]
    priority: int


def lane_of(terms: Terms) -> Lane:
    """The lane that tasks with these terms belong to."""
    return Lane(terms.organization, terms.queue, terms.kind, terms.capabilities, terms.priority)


class Lanes:
    """What is known of lanes, after the commit that made them.

    A number stands for one lane for ever. A lane that has been empty for `KEPT_US` is removed, though, and gets another
    number when it is needed again: so the number of a lane is trusted for `TRUSTED_US`, then asked for anew, and asking
    makes it one that is in use. `KEPT_US` is longer than any transaction that asked may stay open. What numbers stand
    for is forgotten as often, so that lanes that have gone do not stay in memory.
    """

    def __init__(self) -> None:
        self._numbers: dict[Lane, int] = {}
        self._lanes: dict[int, Lane] = {}
        self._trusted_since_us = 0

    def numbers(self, tx: Transaction, wanted: Iterable[Lane]) -> dict[Lane, int]:
        """The numbers of lanes; those that are not there yet are made."""
        self._forget_in_time(tx)
        numbers = self._numbers
        known = {lane: numbers.get(lane, 0) for lane in wanted}
        if not all(known.values()):
            known |= self._find(tx, sorted(lane for lane, number in known.items() if not number))
        return known

    def number(self, tx: Transaction, lane: Lane) -> int:
        """The number of one lane, as `numbers` gives it."""
        self._forget_in_time(tx)
        return self._numbers.get(lane) or self.numbers(tx, (lane,))[lane]

    def known(self, now_us: int, lane: Lane) -> int | None:
        """The number of a lane, if it is known and trusted. From any thread."""
        return self._numbers.get(lane) if 0 <= now_us - self._trusted_since_us < TRUSTED_US else None

    def _forget_in_time(self, tx: Transaction) -> None:
        if not 0 <= tx.now_us - self._trusted_since_us < TRUSTED_US:
            self._numbers.clear()
            self._lanes.clear()
            self._trusted_since_us = tx.now_us

    def _find(self, tx: Transaction, missing: list[Lane]) -> dict[Lane, int]:
        rows = batch([(*lane[:3], msgspec.json.encode(lane.capabilities).decode(), lane.priority) for lane in missing])
        tx.run("lane_add", batch=rows)
        found = dict(zip(missing, tx.document("lane_find", batch=rows), strict=True))
        tx.after_commit(lambda: self._remember(found))
        return found

    def _remember(self, found: dict[Lane, int]) -> None:
        self._numbers.update(found)
        self._lanes.update({number: lane for lane, number in found.items()})

    def describe(self, tx: Transaction, numbers: Iterable[int]) -> dict[int, Lane]:
        """What lanes of these numbers stand for."""
        self._forget_in_time(tx)
        wanted = list(numbers)
        unknown = [number for number in wanted if number not in self._lanes]
        if unknown:
            for number, organization, queue, kind, capabilities, priority in tx.document(
                "lane_describe", batch=batch(unknown)
            ):
                self._lanes[number] = Lane(organization, queue, kind, tuple(capabilities), priority)
        return {number: self._lanes[number] for number in wanted}


def remove_idle(tx: Transaction, count: int) -> None:
    """Note which lanes have become empty, and remove those that have been for long: at most `count` of each."""
    tx.run("lane_idle", count=count)
    gone = tx.document("lane_gone", before=tx.now_us - KEPT_US, count=count)
    if gone:
        document = batch(gone)
        tx.run("remove_lane_counts", batch=document)
        tx.run("remove_lane_marks", batch=document)
        tx.run("remove_lanes", batch=document)
