"""Claiming: which waiting tasks a worker gets now."""

from collections import Counter
from collections.abc import Iterator, Sequence
from heapq import merge, nsmallest
from itertools import groupby, islice
from typing import Any, NamedTuple

from perdure.domain import limits
from perdure.domain.attempt import Hold, Lease
from perdure.domain.task import Body
from perdure.store.ledger import ClaimRequest, WorkerOrder
from perdure.store.relational.bodies import from_columns
from perdure.store.relational.counting import LEASED, QUEUED, count_moves
from perdure.store.relational.lanes import Lane, Lanes
from perdure.store.relational.sweeping import sweep_due, sweep_overdue
from perdure.store.relational.transaction import batch
from perdure.store.sqlite.transaction import Transaction

_NO_PAYLOAD = Body(b"null")
PAGE_ROWS = 32
"""How many entries of a lane are read at a time where several lanes compete."""


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


def claim(tx: Transaction, requests: Sequence[ClaimRequest], lanes: Lanes) -> list[list[Lease]]:
    """Lease tasks to the workers of these requests, one after the other."""
    if tx.value("due_peek"):
        sweep_due(tx, limits.SWEEP_MAX_TASKS)
    if tx.value("overdue_peek"):
        sweep_overdue(tx, limits.SWEEP_MAX_TASKS)
    return [_claim(tx, request, lanes) for request in requests]


def _claim(tx: Transaction, request: ClaimRequest, lanes: Lanes) -> list[Lease]:
    grants = _grants(tx, request.worker_id)
    if grants is None or grants.order != WorkerOrder.WORK or not request.leases:
        return []
    if grants.held:
        repeated = tx.document("claim_repeated", worker=request.worker_id, batch=batch(request.leases))
        if repeated:
            return [_lease_of(row) for row in _read(tx, repeated)]
    want = min(len(request.leases), grants.capacity - grants.held, limits.CLAIM_MAX_TASKS)
    picked = _pick(tx, grants, lanes, want) if want > 0 else []
    if not picked:
        return []
    rows = [(n, *lease) for n, lease in zip(picked, request.leases, strict=False)]
    tx.run("claim_lease", worker=request.worker_id, batch=batch(rows))
    leased = _read(tx, rows)
    _tally(tx, leased)
    return [_lease_of(row) for row in leased]


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


def _pick(tx: Transaction, grants: _Grants, lanes: Lanes, want: int) -> list[int]:
    """The numbers of the next tasks for the worker: by priority, then by place in line."""
    heads = dict(tx.document("lane_ready"))
    known = lanes.describe(tx, heads)
    paused = {tuple(each) for each in tx.document("claim_paused")}
    fitting = [
        number
        for number, lane in known.items()
        if grants.fit(lane)
        and (lane.organization, "queue", lane.queue) not in paused
        and (lane.organization, "organization", lane.organization) not in paused
    ]
    fitting.sort(key=lambda number: -known[number].priority)
    picked: list[int] = []
    for _, band in groupby(fitting, key=lambda number: known[number].priority):
        picked += _pick_band(tx, {number: heads[number] for number in band}, want - len(picked))
        if len(picked) >= want:
            break
    return picked


def _pick_band(tx: Transaction, heads: dict[int, int], want: int) -> list[int]:
    """The oldest tasks of lanes of one priority. Only the lanes with the `want` oldest heads can have any of them."""
    if len(heads) == 1:
        (lane,) = heads
        return [n for _, n in tx.document("claim_pick", lane=lane, after=heads[lane] - 1, count=want)]
    oldest = nsmallest(want, heads, key=lambda lane: heads[lane])
    lines = [_line(tx, lane, heads[lane] - 1) for lane in oldest]
    return [n for _, n in islice(merge(*lines), want)]


def _line(tx: Transaction, lane: int, after: int) -> Iterator[list[int]]:
    """The entries of one lane in order, read a page at a time."""
    while True:
        page = tx.document("claim_pick", lane=lane, after=after, count=PAGE_ROWS)
        yield from page
        if len(page) < PAGE_ROWS:
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
