"""Counters by lane and state, changed in the transaction that moves the tasks."""

from collections.abc import Iterable

from perdure.domain.states import TaskState
from perdure.store.relational.transaction import Transaction, batch

Move = tuple[int, str | None, str | None, int]
"""Lane, the state that tasks leave, the state that they enter, and how many."""


def count_moves(tx: Transaction, moves: Iterable[Move]) -> None:
    """Count tasks out of one state and into another; `None` is outside."""
    changes: dict[tuple[int, str], int] = {}
    for lane, source, target, moved in moves:
        if source is not None:
            changes[lane, source] = changes.get((lane, source), 0) - moved
        if target is not None:
            changes[lane, target] = changes.get((lane, target), 0) + moved
    rising = [(lane, state, change) for (lane, state), change in changes.items() if change > 0]
    falling = [(lane, state, -change) for (lane, state), change in changes.items() if change < 0]
    if rising:
        tx.run("count_in", batch=batch(rising))
    if falling:
        tx.run("count_out", batch=batch(falling))


QUEUED = str(TaskState.QUEUED)
PENDING = str(TaskState.PENDING)
LEASED = str(TaskState.LEASED)
RUNNING = str(TaskState.RUNNING)
CANCELLING = str(TaskState.CANCELLING)
ATTEMPTS = "attempts"
"""Counted beside the states: how many attempts of a lane have ended."""
