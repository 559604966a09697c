"""What follows the end of a task, however it ended: its job's counters, its children, theirs in a bounded cascade.

And what follows when a task waits for nothing more: it passes its gates and joins its lane. The two are one circle: who
ends gives back slots, who gets one joins, and who joins may supersede others, which end.
"""

from collections.abc import Sequence
from typing import Any

from perdure.domain import limits
from perdure.domain.policy import SYSTEM
from perdure.domain.states import HELD, WAITING, Reason, TaskState
from perdure.store.relational.counting import CANCELLING, PENDING, QUEUED, count_moves
from perdure.store.relational.gates import (
    Leaving,
    Named,
    Started,
    free_slots,
    free_turns,
    next_at,
    pass_gates,
    pass_last,
    start,
    take,
)
from perdure.store.relational.line import places
from perdure.store.relational.looking import look
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.wakeups import Topic

OPENINGS_MAX = 100
"""How often it is looked whose turn it is at gates, while those whose turn it was go away."""


def end_waiting(tx: Transaction) -> int:
    """End the waiting tasks staged in `ending`; their direct children are settled with them. Returns how many ended."""
    ended = _write_ends(tx, follow=True)
    if ended.jobs:
        follow_ends(tx)
    leave(tx, ended.gated)
    return ended.tasks


class _Ends:
    __slots__ = ("gated", "jobs", "tasks")

    def __init__(self, tasks: int, jobs: bool, gated: Sequence[Leaving]) -> None:
        self.tasks = tasks
        self.jobs = jobs
        self.gated = gated


def _write_ends(tx: Transaction, follow: bool) -> _Ends:
    summary = tx.document("ending_summary")
    ends = _Ends(summary["tasks"], bool(summary["jobs"]), summary["gated"])
    if ends.tasks:
        tx.run("ending_end")
        tx.run("ending_remove")
        count_moves(tx, summary["moves"])
        if ends.jobs:
            tx.run("ending_ended")
            if not follow:
                tx.run("ending_frontier")
                tx.announce(Topic.FOLLOW)
        tx.run("ending_clear")
        tx.announce(Topic.ENDED)
    return ends


def follow_ends(tx: Transaction) -> None:
    """Count the tasks staged in `ended` into their jobs and settle their direct children."""
    tx.run("job_tally")
    settle_children(tx)


def settle_children(tx: Transaction) -> int:
    """Let the children of the tasks staged in `ended` go on, or end them. Returns how many ended.

    The children of those that end are left to the cascade: a settle touches one level only.
    """
    tx.run("children_touch")
    tx.run("ended_clear")
    tx.run("children_count_down")
    return settle_touched(tx)


def settle_touched(tx: Transaction) -> int:
    """Decide for the tasks staged in `touched` whether their rules are met or never will be. Returns how many ended."""
    tx.run("children_met")
    tx.run("children_unmet")
    tx.run("touched_clear")
    unmet = _write_ends(tx, follow=False)
    if unmet.tasks:
        tx.run("job_tally")
        tx.run("ended_clear")
        tx.announce(Topic.READY | Topic.DUE)
    join(tx)
    leave(tx, unmet.gated)
    return unmet.tasks


def join(tx: Transaction) -> int:
    """Let the tasks staged in `joining` pass their gates and join their lanes, or wait on for their time alone.

    Returns how many joined or came to wait at a gate: so many have moved.
    """
    # Who waits for a lock at a gate is later than those that are due by now: nobody else joins meanwhile.
    due_us = tx.now_us
    summary = tx.document("joining_summary", due=due_us)
    if not summary:
        return 0
    total = sum(moved for *_, moved, _ in summary)
    due = sum(moved for _, _, is_due, _, moved, _ in summary if is_due)
    superseded: list[Named] = []
    if any(gated for *_, gated in summary):
        superseded = pass_gates(tx, due_us)
        summary = [row for row in tx.document("joining_summary", due=due_us) if not row[3]]
    if summary:
        tx.run("joining_apply", first=places(tx, total), due=due_us)
    tx.run("joining_clear")
    count_moves(tx, [(lane, source, QUEUED, joined) for lane, source, is_due, _, joined, _ in summary if is_due])
    tx.announce(Topic.READY if due == total else Topic.READY | Topic.DUE)
    if superseded:
        _supersede(tx, superseded)
    return int(due)


def leave(tx: Transaction, leaving: Sequence[Leaving]) -> None:
    """Take back the slots of tasks with gates that have left their lanes, and give them to others."""
    if leaving:
        open_gates(tx, free_slots(tx, leaving))


def mark_gated(tx: Transaction, numbers: Sequence[int]) -> None:
    """Note that new tasks have gates: from now on they join nothing before they have passed them."""
    tx.run("gated_mark", batch=batch(numbers))


def enter(tx: Transaction, numbers: Sequence[int], pending: bool = False) -> list[tuple[int, str]]:
    """Let new tasks that have gates pass them, unless all are to stay `pending`. Returns the states that they have."""
    mark_gated(tx, numbers)
    if pending:
        return []
    document = batch(numbers)
    tx.run("gated_stage", batch=document)
    join(tx)
    states: list[tuple[int, str]] = tx.document("gated_states", batch=document)
    return states


def let_others_in(tx: Transaction, settled: Sequence[tuple[int, bool, str]]) -> None:
    """What follows where an attempt of a task with gates has ended: rows of number, whether it ended, and its state."""
    leave(tx, [(n, ended) for n, ended, state in settled if state != QUEUED])
    returned = [n for n, _, state in settled if state == QUEUED]
    if returned:
        join_again(tx, returned)


def open_gates(tx: Transaction, gates: Sequence[int]) -> None:
    """Let the tasks join whose turn it is at gates that may have room, and which are kept from others."""
    for _ in range(OPENINGS_MAX):
        turns = next_at(tx, gates)
        if not turns:
            return
        if all(is_last for *_, is_last in turns):
            pass_last(tx, turns)
        else:
            tx.run("joining_stage", batch=batch([(n, lane, state) for n, lane, state, *_ in turns]))
            join(tx)
        # Others may have ended some of those whose turn it was: then it is the turn of the next.


def begin(tx: Transaction, started: Sequence[Started]) -> bool:
    """What follows where tasks with gates are claimed. Returns whether the next of their keys may have joined."""
    if not started:
        return False
    start(tx, started)
    freed = free_turns(tx, started)
    open_gates(tx, take(tx, freed))
    return bool(freed)


def join_again(tx: Transaction, returned: Sequence[int]) -> None:
    """Let tasks that came back to their lanes and start at a rate wait for another slot of it."""
    rows = tx.run("rated_return", batch=batch(returned))
    if rows:
        count_moves(tx, [(lane, QUEUED, PENDING, 1) for _, lane in rows])
        tx.run("joining_stage", batch=batch([(n, lane, PENDING) for n, lane in sorted(rows)]))
        join(tx)


def _supersede(tx: Transaction, tasks: Sequence[Named]) -> None:
    """Cancel tasks that make way for others."""
    rows = []
    for n, state, _, lane, *_ in look(tx, "cancel_look", list(dict.fromkeys(tasks))):
        row = (n, SYSTEM, Reason.SUPERSEDED, None, None, limits.CANCEL_GRACE_DEFAULT_US, lane, state)
        rows.append(row)
    waiting = [row for row in rows if row[7] in WAITING]
    if waiting:
        tx.run("cancel_waiting", batch=batch(waiting))
        end_waiting(tx)
    cancel_held_rows(tx, [row for row in rows if row[7] in HELD and row[7] != TaskState.CANCELLING])


def cancel_held_rows(tx: Transaction, rows: Sequence[Sequence[Any]]) -> None:
    """Ask holders to stop: rows of number, actor, reason, text, note, grace, lane, state."""
    if rows:
        tx.run("cancel_held", batch=batch(rows))
        count_moves(tx, [(row[6], row[7], CANCELLING, 1) for row in rows])
        tx.announce(Topic.CONTROL)
