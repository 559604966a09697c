"""Claiming: which waiting tasks a worker gets now."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from itertools import groupby, islice
from typing import Any, NamedTuple

from perdure.domain import limits
from perdure.domain.attempt import Hold, Lease
from perdure.domain.fair_share import Line, Shares
from perdure.domain.task import Body
from perdure.store.ledger import ClaimRequest, WorkerOrder
from perdure.store.relational.ageing import Ageing
from perdure.store.relational.bodies import from_columns
from perdure.store.relational.counting import LEASED, QUEUED, count_moves
from perdure.store.relational.ending import begin
from perdure.store.relational.flow import Flow, Rooms, rooms_of
from perdure.store.relational.lanes import Lane, Lanes
from perdure.store.relational.sweeping import sweep_due, sweep_overdue
from perdure.store.relational.transaction import batch
from perdure.store.sqlite.transaction import Transaction

_NO_PAYLOAD = Body(b"null")
PAGE_ROWS = 32
"""How many entries of a lane are read at a time, at most, where several lanes compete."""
PAGE_MIN_ROWS = 4
ROUNDS_MAX = 16
"""How often a claim looks again, where the next tasks of keys that take turns joined while it went on."""


class _Grants(NamedTuple):
    """What a worker may claim."""

    kinds: frozenset[str]
    queues: frozenset[str]
    organizations: frozenset[str]
    capabilities: frozenset[str]
    capacity: int
    order: str
    held: int

    def fit(self, lane: Lane) -> bool:
        """Whether the worker may have tasks of the lane."""
        return (
            lane.kind in self.kinds
            and lane.queue in self.queues
            and (not self.organizations or lane.organization in self.organizations)
            and self.capabilities.issuperset(lane.capabilities)
        )


class _Band(NamedTuple):
    """Lanes that count as of one priority: the places of their first tasks, what they stand for, and their rooms."""

    priority: int
    heads: dict[int, int]
    lanes: dict[int, Lane]
    rooms: Rooms


class Claims:
    """Claims of one process, with what it remembers between them. Used by one thread at a time."""

    def __init__(self) -> None:
        self._shares = Shares()
        self._ageing = Ageing()
        self.limited = False
        """Whether a queue or an organization had a limit at the last claim."""

    def claim(self, tx: Transaction, requests: Sequence[ClaimRequest], lanes: Lanes) -> list[list[Lease]]:
        """Lease tasks to the workers of these requests, one after the other."""
        if tx.value("due_peek"):
            sweep_due(tx, limits.SWEEP_MAX_TASKS)
        if tx.value("overdue_peek"):
            sweep_overdue(tx, limits.SWEEP_MAX_TASKS)
        return [self._claim(tx, request, lanes) for request in requests]

    def _claim(self, tx: Transaction, request: ClaimRequest, lanes: Lanes) -> list[Lease]:
        grants = _grants(tx, request.worker_id)
        if grants is None or grants.order != WorkerOrder.WORK or not request.leases:
            return []
        if grants.held:
            repeated = tx.document("claim_repeated", worker=request.worker_id, batch=batch(request.leases))
            if repeated:
                return [_lease_of(row) for row in _read(tx, repeated)]
        want = min(len(request.leases), grants.capacity - grants.held, limits.CLAIM_MAX_TASKS)
        leased: list[list[Any]] = []
        for _ in range(ROUNDS_MAX):
            left = request.leases[len(leased) : max(want, 0)]
            rows, others = self._lease(tx, grants, lanes, request, left) if left else ([], False)
            leased += rows
            if not others:
                break
        return [_lease_of(row) for row in leased]

    def _lease(
        self, tx: Transaction, grants: _Grants, lanes: Lanes, request: ClaimRequest, leases: Sequence[tuple[str, str]]
    ) -> tuple[list[list[Any]], bool]:
        """Lease what is in line now. Returns also whether others may have joined the line in their place."""
        picked, rooms = self._pick(tx, grants, lanes, len(leases), request.ageing_us)
        if not picked:
            return [], False
        rows = [(n, *lease) for n, lease in zip(picked, leases, strict=False)]
        tx.run("claim_lease", worker=request.worker_id, batch=batch(rows))
        leased = _read(tx, rows)
        _tally(tx, leased)
        rooms.spend(tx, [(row[24], row[0], row[1]) for row in leased])
        return leased, begin(tx, [(row[0], row[1], row[20]) for row in leased if row[20] is not None])

    def _pick(
        self, tx: Transaction, grants: _Grants, lanes: Lanes, want: int, ageing_us: int
    ) -> tuple[list[int], Rooms]:
        """The numbers of the next tasks for the worker: by priority; then organizations take turns; then by age."""
        heads = dict(tx.document("lane_ready"))
        known = lanes.describe(tx, heads)
        flow = Flow(tx.document("claim_flow"))
        self.limited = flow.limited
        fitting = {number: lane for number, lane in known.items() if grants.fit(lane) and not flow.is_paused(lane)}
        rooms = rooms_of(tx, flow, fitting)
        urgency = self._ageing.priorities(tx, ageing_us, heads.items(), fitting)
        picked: list[tuple[int, int]] = []
        for priority, band in groupby(sorted(fitting, key=lambda lane: -urgency[lane]), key=urgency.__getitem__):
            ready = {lane: heads[lane] for lane in band if rooms.has(lane)}
            picked += self._pick_band(tx, _Band(priority, ready, known, rooms), flow, want - len(picked))
            if len(picked) >= want:
                break
        return [n for _, n in picked], rooms

    def _pick_band(self, tx: Transaction, band: _Band, flow: Flow, want: int) -> list[tuple[int, int]]:
        """The next tasks of lanes of one priority, as (lane, number)."""
        if len(band.heads) == 1:
            (lane,) = band.heads
            count = band.rooms.least(lane, want)
            found = tx.document("claim_pick", lane=lane, after=band.heads[lane] - 1, count=count)
            for _ in found:
                band.rooms.take(lane)
            return [(lane, n) for _, n in found]
        organizations: dict[str, dict[int, int]] = {}
        for lane, head in band.heads.items():
            organizations.setdefault(band.lanes[lane].organization, {})[lane] = head
        if len(organizations) <= 1:
            return list(islice(_oldest(tx, band.heads, band.rooms, want), want))
        page = max(PAGE_MIN_ROWS, 2 * want // len(organizations))
        lines = {
            name: Line(min(heads.values()), _oldest(tx, heads, band.rooms, page))
            for name, heads in organizations.items()
        }
        turns = self._shares.turns(band.priority, lines, want, flow.weight)
        self._shares.keep(band.priority, turns)
        return turns.picked


def _grants(tx: Transaction, worker: str) -> _Grants | None:
    found = tx.document("worker_for_claim", worker=worker)
    if found is None:
        return None
    kinds, queues, organizations, capabilities, capacity, order, held = found
    return _Grants(
        frozenset(kinds),
        frozenset(queues),
        frozenset(organizations),
        frozenset(capabilities),
        capacity,
        order,
        held,
    )


def _oldest(tx: Transaction, heads: Mapping[int, int], rooms: Rooms, page: int) -> Iterator[tuple[int, int]]:
    """The tasks of lanes as (lane, number), oldest first. A lane is read when its turn comes, and left when it has no
    room any more.
    """
    lines: dict[int, Iterator[list[int]]] = {}
    heap = [(head, lane, 0) for lane, head in heads.items()]
    heapify(heap)
    while heap:
        _, lane, n = heappop(heap)
        if not rooms.has(lane):
            continue
        if lane in lines:
            rooms.take(lane)
            yield lane, n
        else:
            lines[lane] = _line(tx, lane, heads[lane] - 1, min(page, PAGE_ROWS))
        following = next(lines[lane], None)
        if following is not None:
            heappush(heap, (following[0], lane, following[1]))


def _line(tx: Transaction, lane: int, after: int, page_rows: int) -> Iterator[list[int]]:
    """The entries of one lane in order, read a page at a time."""
    while True:
        page = tx.document("claim_pick", lane=lane, after=after, count=page_rows)
        yield from page
        if len(page) < page_rows:
            return
        after = page[-1][0]


def _tally(tx: Transaction, leased: list[list[Any]]) -> None:
    """Count the leased tasks; their jobs run from now on."""
    lanes = Counter(row[24] for row in leased)
    count_moves(tx, [(lane, QUEUED, LEASED, moved) for lane, moved in lanes.items()])
    jobs = {row[25] for row in leased if row[25] is not None}
    if jobs:
        tx.run("job_start", batch=batch(sorted(jobs)))


def _read(tx: Transaction, rows: Sequence[Any]) -> list[list[Any]]:
    leased: list[list[Any]] = tx.document("claim_read", batch=batch(rows))
    return leased


def _lease_of(row: list[Any]) -> Lease:
    payload = from_columns(row[7], row[8])
    return Lease(
        hold=Hold(row[0], row[1], row[2], row[3]),
        kind=row[4],
        queue=row[5],
        priority=row[6],
        payload=payload or _NO_PAYLOAD,
        attempt=row[9],
        fence=row[10],
        generation=row[11],
        lease_us=row[12],
        timeout_us=row[13],
        deadline_us=row[14],
        start_within_us=row[15],
        job_id=row[16],
        name=row[17],
        parents=row[18],
        retry=row[19],
        options=row[20],
        initiator=row[21],
        checkpoint=row[22],
        max_attempts=row[23],
    )
