"""Which lanes a worker may claim from, most urgent first."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from perdure.ambient import Clock
from perdure.domain import limits
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.lanes import Lane

_decode = msgspec.json.Decoder().decode

LOAD_ALL_US = limits.SECOND_US
LOAD_ALL_SHARE = 100
"""Looking at all lanes takes at most one part in so many of the time."""
KNOWN_MAX = 256
"""How many different sets of grants are remembered with their lanes."""

Bands = list[list[int]]
"""Lanes by priority, most urgent first."""


class Grants(NamedTuple):
    """What a worker may claim, as its row tells, and what is paused: JSON texts."""

    kinds: str
    queues: str
    organizations: str
    capabilities: str
    paused: str | None


class Catalogue:
    """Every lane of the store, and which of them fit whom. Lanes are made and never changed. Used by one thread."""

    def __init__(self, clock: Clock) -> None:
        self._monotonic_us = clock.monotonic_us
        self._lanes: dict[int, Lane] = {}
        self._newest = 0
        self._bands: dict[Grants, Bands] = {}
        self._load_all_us = 0

    def bands(self, tx: Transaction, grants: Grants, newest: int | None) -> Bands:
        """The lanes that fit, by priority. `newest` is the highest number of a lane there is."""
        if newest is None:
            return []
        if self._monotonic_us() >= self._load_all_us:
            self._load_all(tx)
        elif newest > self._newest:
            self._load(tx, self._newest)
        bands = self._bands.get(grants)
        if bands is None:
            if len(self._bands) >= KNOWN_MAX:
                self._bands.clear()
            bands = self._bands[grants] = _bands(self._fitting(grants))
        return bands

    def lane(self, tx: Transaction, number: int) -> Lane:
        """What a lane stands for."""
        if number not in self._lanes:
            self._load_all(tx)
        return self._lanes[number]

    def _load_all(self, tx: Transaction) -> None:
        """Lanes may be committed after one with a higher number, so all are looked at now and then."""
        begun_us = self._monotonic_us()
        self._load(tx, 0)
        ended_us = self._monotonic_us()
        self._load_all_us = ended_us + max(LOAD_ALL_US, LOAD_ALL_SHARE * (ended_us - begun_us))

    def _load(self, tx: Transaction, above: int) -> None:
        known = len(self._lanes)
        for number, organization, queue, kind, capabilities, priority in tx.run("claim_lanes", above=above):
            lane = Lane(organization, queue, kind, tuple(_decode(capabilities)), priority)
            self._lanes[number] = lane
            self._newest = max(self._newest, number)
        if len(self._lanes) > known:
            self._bands.clear()

    def _fitting(self, grants: Grants) -> Iterable[tuple[int, int]]:
        """Priority and number of each lane that fits."""
        kinds, queues, organizations = (set(_decode(text)) for text in grants[:3])
        capabilities = set(_decode(grants.capabilities))
        paused = {tuple(each) for each in _decode(grants.paused or "[]")}
        for number, lane in self._lanes.items():
            if (
                lane.kind in kinds
                and lane.queue in queues
                and (not organizations or lane.organization in organizations)
                and capabilities.issuperset(lane.capabilities)
                and (lane.organization, "queue", lane.queue) not in paused
                and (lane.organization, "organization", lane.organization) not in paused
            ):
                yield lane.priority, number


def _bands(fitting: Iterable[tuple[int, int]]) -> Bands:
    def priority(each: tuple[int, int]) -> Any:
        return -each[0]

    ordered = sorted(fitting, key=lambda each: (-each[0], each[1]))
    return [[number for _, number in band] for _, band in groupby(ordered, key=priority)]
