"""What follows the end of a task, however it ended: its job's counters, its children, theirs in a bounded cascade."""

from perdure.store.relational.counting import count_moves
from perdure.store.relational.line import join
from perdure.store.relational.transaction import Transaction
from perdure.store.wakeups import Topic


def end_waiting(tx: Transaction) -> int:
    """End the waiting tasks staged in `ending`; their direct children are settled with them. Returns how many ended."""
    ended = _write_ends(tx, follow=True)
    if ended.jobs:
        follow_ends(tx)
    return ended.tasks


class _Ends:
    __slots__ = ("jobs", "tasks")

    def __init__(self, tasks: int, jobs: bool) -> None:
        self.tasks = tasks
        self.jobs = jobs


def _write_ends(tx: Transaction, follow: bool) -> _Ends:
    summary = tx.document("ending_summary")
    ends = _Ends(summary["tasks"], bool(summary["jobs"]))
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
    join(tx)
    unmet = _write_ends(tx, follow=False)
    if unmet.tasks:
        tx.run("job_tally")
        tx.run("ended_clear")
        tx.announce(Topic.READY | Topic.DUE)
    return unmet.tasks
