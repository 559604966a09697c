"""What claims bind to their statements, and what the rows say that these tell."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from perdure.domain import limits
from perdure.domain.attempt import Hold, Lease
from perdure.domain.task import Body
from perdure.store.postgres.grants import Grants
from perdure.store.postgres.heads import Take
from perdure.store.postgres.submission import EARLY_US, LATE_US
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.bodies import from_columns
from perdure.store.relational.lanes import Lane
from perdure.store.relational.transaction import batch

_NO_PAYLOAD = Body(b"null")
HELD_STEP_US = limits.SECOND_US
"""The bound below the fences that a worker holds is written when it has moved by this much."""


class WorkerRow(NamedTuple):
    """A worker's row, which the claim has locked."""

    id: str
    grants: Grants
    capacity: int
    order: str
    held_from: int
    newest_lane: int | None
    due_us: int | None
    """The first instant found at which a waiting task is due, if that has come."""
    overdue_us: int | None
    """The first one found at which a waiting task is past its TTL or deadline, if that has come."""

    def as_guessed(self, guess: "WorkerRow") -> bool:
        """Whether a claim that took this row for `guess` has done right."""
        same = self[1:4] == guess[1:4] and self.newest_lane == guess.newest_lane
        return same and self.held_from >= guess.held_from and self.due_us is None and self.overdue_us is None


class Looked(NamedTuple):
    """What `claim_look` has found."""

    worker: WorkerRow
    as_guessed: bool
    """Whether the server found it so, where it was asked: then it let the claim behind go on."""
    server_us: int | None


def looked(worker_id: str, found: Sequence[tuple[Any, ...]]) -> Looked | None:
    """`None` for a worker that is not there."""
    if not found:
        return None
    ((kinds, queues, organizations, capabilities, *rest),) = found
    capacity, order, held_from, due_us, overdue_us, newest_lane, flow, as_guessed, _, server_us = rest
    grants = Grants(kinds, queues, organizations, capabilities, flow)
    worker = WorkerRow(worker_id, grants, capacity, order, held_from, newest_lane, due_us, overdue_us)
    return Looked(worker, as_guessed == "true", server_us)


def unguessed(worker_id: str) -> dict[str, Any]:
    """What `claim_look` is given for a claim whose transaction goes on: it is looked at here what was found."""
    return {
        "worker": worker_id,
        "alone": False,
        "kinds": "",
        "queues": "",
        "organizations": "",
        "capabilities": "",
        "flow": None,
        "capacity": 0,
        "ordered": "",
        "held_from": 0,
        "newest_lane": None,
        "earliest": 0,
        "latest": 0,
    }


def guessed(guess: WorkerRow, now_us: int) -> dict[str, Any]:
    """What `claim_look` is given for a claim that commits by itself at an instant, if the row is as it was."""
    return {
        "worker": guess.id,
        "alone": True,
        **guess.grants._asdict(),
        "capacity": guess.capacity,
        "ordered": guess.order,
        "held_from": guess.held_from,
        "newest_lane": guess.newest_lane,
        "earliest": now_us - EARLY_US,
        "latest": now_us + LATE_US,
    }


def lease_from(
    tx: Transaction, worker: WorkerRow, leases: Sequence[tuple[str, str]], takes: Sequence[Take]
) -> list[tuple[Any, ...]]:
    """Lease tasks of these stretches."""
    return tx.run("claim", **bindings_of(tx, worker, leases, takes))


def bindings_of(
    tx: Transaction,
    worker: WorkerRow,
    leases: Sequence[tuple[str, str]],
    takes: Sequence[Take],
    *,
    alone: bool = False,
) -> dict[str, Any]:
    """What `claim` is given. `alone`: it commits by itself behind a `claim_look`."""
    ids = [id for id, _ in leases]
    return {
        "alone": alone,
        "worker": worker.id,
        "leases": batch(leases),
        "known": batch({id: place for place, id in enumerate(ids)}),
        "first": min(ids),
        "last": max(ids),
        "want": len(leases),
        "stretches": batch(takes),
        "capacity": worker.capacity,
        "held_from": min(worker.held_from, tx.now_us),
        "held_step": HELD_STEP_US,
    }


def lease_of(row: tuple[Any, ...], lane: Lane) -> Lease:
    """The lease that a row of `claim` tells of."""
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
