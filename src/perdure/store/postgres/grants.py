"""Which lanes a worker may claim from, most urgent first."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

import msgspec

from perdure.ambient import Clock
from perdure.domain import limits
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.flow import Flow
from perdure.store.relational.lanes import Lane

_decode = msgspec.json.Decoder().decode

LOAD_ALL_US = limits.SECOND_US
LOAD_ALL_SHARE = 100
"""Looking at all lanes takes at most one part in so many of the time."""
KNOWN_MAX = 256
"""How many different sets of grants are remembered with their lanes."""


class Fitting:
    """Lanes that fit somebody, and which of them had tasks when all of them were last looked at."""

    def __init__(self, lanes: Mapping[int, Lane], flow: Flow, urgency: Mapping[int, int] | None = None) -> None:
        """`urgency`: the priorities by which the lanes count, where these are not their own."""
        self.lanes = lanes
        self.flow = flow
        self.limited = any(map(flow.limits, lanes.values()))
        priorities = urgency or {number: lane.priority for number, lane in lanes.items()}
        self.bands = bands = _bands((priority, number) for number, priority in priorities.items())
        """Lanes by priority, most urgent first."""
        self.rank = {lane: place for place, band in enumerate(bands) for lane in band}
        """Each lane's place among the priorities."""
        self._priorities = [priorities[band[0]] for band in bands]
        self.busy: set[int] = set()
        self.look_at_all_us = 0

    def priority(self, rank: int) -> int:
        """The priority of that place among the priorities."""
        return self._priorities[rank]


class Grants(NamedTuple):
    """What a worker may claim, as its row tells, and what documents say about claims: JSON texts."""

    kinds: str
    queues: str
    organizations: str
    capabilities: str
    flow: str | None


class Catalogue:
    """Every lane of the store, and which of them fit whom. What a number stands for never changes. For one thread.

    `keep_only` is told which lanes there are when others have gone.
    """

    def __init__(self, clock: Clock, keep_only: Callable[[Collection[int]], None]) -> None:
        self._keep_only = keep_only
        self._monotonic_us = clock.monotonic_us
        self._lanes: dict[int, Lane] = {}
        self._newest = 0
        self._fitting: dict[Grants, Fitting] = {}
        self.load_all_us = 0
        """When it is time to look at all lanes."""
        self.loaded_us = 0
        """When that was done last."""

    def fitting(self, tx: Transaction, grants: Grants, newest: int | None) -> Fitting:
        """The lanes that fit. `newest` is the highest number of a lane there is."""
        if self.stale:
            self._load_all(tx)
        elif newest is not None and newest > self._newest:
            self._lanes |= self._read(tx, above=self._newest)
            self._fitting.clear()
        fitting = self._fitting.get(grants)
        if fitting is None:
            if len(self._fitting) >= KNOWN_MAX:
                self._fitting.clear()
            flow = Flow(_decode(grants.flow or "[]"))
            fitting = self._fitting[grants] = Fitting(dict(self._find(grants, flow)), flow)
        return fitting

    def remembered(self, grants: Grants) -> Fitting | None:
        """The lanes that fit, as far as is known."""
        return self._fitting.get(grants)

    @property
    def stale(self) -> bool:
        """Whether it is time to look at all lanes."""
        return self._monotonic_us() >= self.load_all_us

    def lane(self, tx: Transaction, number: int) -> Lane:
        """What a lane stands for."""
        if number not in self._lanes:
            self._load_all(tx)
        return self._lanes[number]

    def _load_all(self, tx: Transaction) -> None:
        """Lanes may be committed after one with a higher number, and go when they have been empty for long, so all are
        looked at now and then.
        """
        begun_us = self._monotonic_us()
        self.loaded(tx.run("claim_lanes", above=0), begun_us)

    def loaded(self, rows: Sequence[tuple[Any, ...]], begun_us: int) -> bool:
        """Take all lanes as `claim_lanes` tells them, which was asked at `begun_us`; whether others fit than before."""
        before = self._lanes.keys()
        self._lanes = self._understood(rows)
        changed = self._lanes.keys() != before
        if changed:
            self._fitting.clear()
            self._keep_only(self._lanes.keys())
        self.loaded_us = ended_us = self._monotonic_us()
        self.load_all_us = ended_us + max(LOAD_ALL_US, LOAD_ALL_SHARE * (ended_us - begun_us))
        return changed

    def _read(self, tx: Transaction, above: int) -> dict[int, Lane]:
        """The lanes above a number."""
        return self._understood(tx.run("claim_lanes", above=above))

    def _understood(self, rows: Sequence[tuple[Any, ...]]) -> dict[int, Lane]:
        found = {
            number: Lane(organization, queue, kind, tuple(_decode(capabilities)), priority)
            for number, organization, queue, kind, capabilities, priority in rows
        }
        self._newest = max(self._newest, *found) if found else self._newest
        return found

    def _find(self, grants: Grants, flow: Flow) -> Iterable[tuple[int, Lane]]:
        """Each lane that fits, by number."""
        kinds, queues, organizations = (set(_decode(text)) for text in grants[:3])
        capabilities = set(_decode(grants.capabilities))
        for number, lane in self._lanes.items():
            if (
                lane.kind in kinds
                and lane.queue in queues
                and (not organizations or lane.organization in organizations)
                and capabilities.issuperset(lane.capabilities)
                and not flow.is_paused(lane)
            ):
                yield number, lane


def _bands(fitting: Iterable[tuple[int, int]]) -> list[list[int]]:
    def priority(each: tuple[int, int]) -> Any:
        return -each[0]

    ordered = sorted(fitting, key=lambda each: (-each[0], each[1]))
    return [[number for _, number in band] for _, band in groupby(ordered, key=priority)]
