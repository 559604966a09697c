"""Counters by lane and state, and the totals: changed in the transaction that moves the tasks."""

from collections import Counter
from collections.abc import Iterable

from perdure.domain.states import TaskState
from perdure.store.sqlite.transaction import Transaction, batch

Move = tuple[int, str | None, str | None, int]
"""Lane, the state that tasks leave, the state that they enter, and how many."""


def count_moves(tx: Transaction, moves: Iterable[Move]) -> None:
    """Count tasks out of one state and into another; `None` is outside."""
    changes: Counter[tuple[int, str]] = Counter()
    for lane, source, target, moved in moves:
        if source is not None:
            changes[lane, source] -= moved
        if target is not None:
            changes[lane, target] += moved
    rows = [(lane, state, change) for (lane, state), change in changes.items() if change]
    if rows:
        document = batch(rows)
        tx.run("count_open", batch=document)
        tx.run("count_change", batch=document)


def count_totals(tx: Transaction, *, tasks: int = 0, attempts: int = 0, results: int = 0) -> None:
    """Change the totals by so many."""
    rows = [(what, n) for what, n in (("tasks", tasks), ("attempts", attempts), ("results", results)) if n]
    if rows:
        tx.run("total_change", batch=batch(rows))


QUEUED = str(TaskState.QUEUED)
PENDING = str(TaskState.PENDING)
LEASED = str(TaskState.LEASED)
RUNNING = str(TaskState.RUNNING)
CANCELLING = str(TaskState.CANCELLING)
