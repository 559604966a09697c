"""Claiming: which waiting tasks a worker gets now."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from perdure.ambient import Clock, SystemClock
from perdure.domain import limits
from perdure.domain.attempt import Hold, Lease
from perdure.domain.task import Body
from perdure.store.ledger import ClaimRequest, WorkerOrder
from perdure.store.postgres.folding import Folds
from perdure.store.postgres.grants import Catalogue, Fitting, Grants
from perdure.store.postgres.heads import Heads, Take
from perdure.store.postgres.marks import Marks
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.bodies import from_columns
from perdure.store.relational.lanes import Lane, Lanes
from perdure.store.relational.sweeping import sweep_due, sweep_overdue
from perdure.store.relational.transaction import batch

_NO_PAYLOAD = Body(b"null")
HELD_STEP_US = limits.SECOND_US
"""The bound below the fences that a worker holds is written when it has moved by this much."""
ROUNDS_MAX = 3
"""How often a claim looks again when others took what it had seen."""


class _Worker(NamedTuple):
    """A worker's row, which the claim has locked."""

    id: str
    grants: Grants
    capacity: int
    order: str
    held_from: int
    newest_lane: int | None


class Claims:
    """Claims of one process, with what it remembers between them. Used by one thread at a time.

    `folds` fold changes of counts on the way, after a claim.
    """

    def __init__(self, clock: Clock | None = None, folds: Folds | None = None) -> None:
        clock = clock or SystemClock()
        self._marks = Marks(clock)
        self._catalogue = Catalogue(clock, self._marks.keep_only)
        self._heads = Heads(clock, self._marks)
        self._folds = folds or Folds(clock)

    def claim(self, tx: Transaction, requests: Sequence[ClaimRequest], lanes: Lanes) -> list[list[Lease]]:
        """Lease tasks to the workers of these requests, one after the other, in the order of their rows' locks."""
        answers: list[list[Lease]] = [[] for _ in requests]
        for place in sorted(range(len(requests)), key=lambda place: requests[place].worker_id):
            answers[place] = self._claim(tx, requests[place])
        self._folds.fold_if_time(tx)
        return answers

    def _claim(self, tx: Transaction, request: ClaimRequest) -> list[Lease]:
        worker = _look(tx, request.worker_id)
        if worker is None or worker.order != WorkerOrder.WORK or not request.leases:
            return []
        fitting = self._catalogue.fitting(tx, worker.grants, worker.newest_lane)
        self._marks.look_below(tx, fitting.rank)
        rows = self._lease(tx, worker, request.leases[: limits.CLAIM_MAX_TASKS], fitting)
        jobs = {row[23] for row in rows if row[23] is not None}
        if jobs:
            tx.run("job_start", batch=batch(sorted(jobs)))
        return [_lease_of(row, self._catalogue.lane(tx, row[4])) for row in rows]

    def _lease(
        self, tx: Transaction, worker: _Worker, leases: Sequence[tuple[str, str]], fitting: Fitting
    ) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        missed = 0
        for _ in range(ROUNDS_MAX):
            takes, sure = self._takes(tx, fitting, len(leases) - len(rows) + missed)
            if rows and not takes:
                break
            got = _lease_from(tx, worker, leases[len(rows) :], takes)
            rows += got
            repeated = any(row[22] is None for row in got)
            missed += sum(take[3] for take in takes) - len(got)
            if sure or repeated or not missed or len(rows) == len(leases):
                break
        picked = [(row[4], row[22]) for row in rows if row[22] is not None]
        tx.after_commit(lambda: self._marks.advance(picked))
        return rows

    def _takes(self, tx: Transaction, fitting: Fitting, want: int) -> tuple[list[Take], bool]:
        """How many to take of which stretch, in order, and whether nothing else could be taken instead.

        Where no two lanes have the same priority, one after the other gives what it has. Where some have, their first
        places are compared before anything is locked.
        """
        if any(len(band) > 1 for band in fitting.bands):
            return self._heads.takes(tx, fitting, want), False
        stretches = [stretch for lane in fitting.rank for stretch in self._marks.stretches(lane)]
        return [(*stretch, want, place) for place, stretch in enumerate(stretches)], True


def _look(tx: Transaction, worker: str) -> _Worker | None:
    """Lock the worker's row, so that no other claim of it goes on beside this one; and do first what time has done."""
    found = tx.run("claim_look", worker=worker)
    if not found:
        return None
    ((kinds, queues, organizations, capabilities, capacity, order, held_from, due, overdue, newest_lane, paused),) = (
        found
    )
    if due:
        sweep_due(tx, limits.SWEEP_MAX_TASKS)
    if overdue:
        sweep_overdue(tx, limits.SWEEP_MAX_TASKS)
    grants = Grants(kinds, queues, organizations, capabilities, paused)
    return _Worker(worker, grants, capacity, order, held_from, newest_lane)


def _lease_from(
    tx: Transaction, worker: _Worker, leases: Sequence[tuple[str, str]], takes: Sequence[Take]
) -> list[tuple[Any, ...]]:
    return tx.run(
        "claim",
        worker=worker.id,
        leases=batch(leases),
        known=batch({id: place for place, (id, _) in enumerate(leases)}),
        want=len(leases),
        stretches=batch(takes),
        capacity=worker.capacity,
        held_from=min(worker.held_from, tx.now_us),
        held_step=HELD_STEP_US,
    )


def _lease_of(row: tuple[Any, ...], lane: Lane) -> Lease:
    return Lease(
        hold=Hold(*row[0:4]),
        kind=lane.kind,
        queue=lane.queue,
        priority=lane.priority,
        payload=from_columns(row[5], row[6]) or _NO_PAYLOAD,
        attempt=row[7],
        fence=row[8],
        generation=row[9],
        lease_us=row[10],
        timeout_us=row[11],
        deadline_us=row[12],
        start_within_us=row[13],
        job_id=row[14],
        name=row[15],
        parents=row[16],
        retry=row[17],
        options=row[18],
        initiator=row[19],
        checkpoint=row[20],
        max_attempts=row[21],
    )
