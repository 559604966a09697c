"""What time does: due tasks join their lanes, overdue ones end, cascades go on, nobody's tasks fail."""

from collections.abc import Callable

from perdure.domain.limits import LOOK_AHEAD_US
from perdure.store.ledger import Swept
from perdure.store.relational import breakers
from perdure.store.relational.ending import cancel_held_rows, end_waiting, join, open_gates, settle_children
from perdure.store.relational.gates import free_slots_due, take
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.wakeups import Topic


def _nothing() -> None:
    """Nobody wants to know."""


def sweep_due(tx: Transaction, count: int, since_us: int = 0) -> int:
    """Let at most `count` due tasks join their lanes, and those whose turn it is at a rate. Returns how many moved.

    `since_us`: what was due before has been dealt with.
    """
    freed = free_slots_due(tx, count, since_us)
    open_gates(tx, take(tx, freed))
    if freed:
        # Some are those of queues and organizations, where tasks wait in their lanes.
        tx.announce(Topic.READY)
    tx.run("due_stage", count=count, since=since_us)
    return max(join(tx), len(freed))


def promote(tx: Transaction, count: int, since_us: int = 0, answered: Callable[[], None] = _nothing) -> Swept:
    """Let due tasks join their lanes; `since_us` as in `sweep_due`. Calls `answered` once it knows whether any are."""
    next_us = _due_next(tx, since_us)
    answered()
    if next_us is None or next_us > tx.now_us:
        return Swept(0, next_us, False, quiet=next_us is None)
    moved = sweep_due(tx, count, since_us) + breakers.tell(tx)
    return Swept(moved, _due_next(tx, since_us), moved >= count)


def _due_next(tx: Transaction, since_us: int) -> int | None:
    """When the next task is due, the next slot of a rate is free, or the next open breaker lets probes through."""
    instants = (tx.value("due_next", since=since_us), tx.value("slot_next", since=since_us))
    return min((instant for instant in instants if instant is not None), default=None)


def sweep_overdue(tx: Transaction, count: int, since_us: int = 0) -> int:
    """End at most `count` waiting tasks past their TTL, and as many past their deadline.

    `since_us`: what was past it before has been dealt with.
    """
    tx.run("overdue_stage_ttl", count=count, since=since_us)
    expired = end_waiting(tx)
    tx.run("overdue_stage_deadline", count=count, since=since_us)
    return expired + end_waiting(tx)


def expire(tx: Transaction, count: int, since_us: int = 0, answered: Callable[[], None] = _nothing) -> Swept:
    """End waiting tasks past their TTL or deadline; `since_us` as in `sweep_overdue`, `answered` as in `promote`."""
    next_us = _overdue_next(tx, since_us)
    answered()
    if next_us is None or next_us > tx.now_us:
        return Swept(0, next_us, False, quiet=next_us is None)
    moved = sweep_overdue(tx, count, since_us)
    return Swept(moved, _overdue_next(tx, since_us), moved >= count)


def _overdue_next(tx: Transaction, since_us: int) -> int | None:
    instant: int | None = tx.value("overdue_next", since=since_us, until=tx.now_us + LOOK_AHEAD_US)
    return instant


def cascade(tx: Transaction, count: int, grace_us: int) -> Swept:
    """Go on from the frontier and with stopping jobs, until `count` tasks have moved or nothing is left."""
    if not tx.value("cascade_more"):
        return Swept(0, None, False, quiet=True)
    moved = 0
    while moved < count:
        step = _cascade_frontier(tx, count - moved) + _stop_jobs(tx, count - moved, grace_us)
        if step == 0:
            break
        moved += step
    return Swept(moved, None, bool(tx.value("cascade_more")))


def _cascade_frontier(tx: Transaction, count: int) -> int:
    """One level from the frontier; returns how many of its tasks were dealt with."""
    tx.run("frontier_take", count=count)
    taken = tx.changes()
    if taken:
        tx.run("frontier_drop")
        settle_children(tx)
    return int(taken)


def _stop_jobs(tx: Transaction, count: int, grace_us: int) -> int:
    """Cancel open tasks of stopping jobs."""
    tx.run("stopping_waiting", count=count)
    moved = end_waiting(tx)
    held = tx.document("stopping_held", count=count, grace=grace_us)
    cancel_held_rows(tx, held)
    return moved + len(held)


def fail_unroutable(tx: Transaction, after_us: int, active_us: int, count: int) -> Swept:
    """End queued tasks that nobody could run for long enough."""
    queued = tx.document("lane_ready")
    if not queued:
        return Swept(0, None, False, quiet=True)
    ready = batch(queued)
    tx.run("unroutable_mark", batch=ready, active=active_us)
    tx.run("unroutable_stage", batch=ready, after=after_us, count=count)
    moved = end_waiting(tx)
    return Swept(moved, None, moved >= count)
