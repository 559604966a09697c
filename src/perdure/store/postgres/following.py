"""What follows where tasks of jobs end by a settle: the counters of their jobs, and their children go on."""

from collections.abc import Sequence

from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.ending import settle_touched
from perdure.store.relational.transaction import batch
from perdure.store.wakeups import Topic

OfJob = tuple[int, int, bool]
"""An ended task by number, its job, and whether the end is a good one."""


def follow(tx: Transaction, ended: Sequence[OfJob]) -> None:
    """Count ended tasks into their jobs, and let their children join their lanes, wait on, or end.

    Most children wait for nothing more once their parents have ended well: those join in the statement that counts
    down. What has a gate, a time to wait for, or a rule to be looked at takes the same way as everywhere.
    """
    document = batch([{"n": n, "job": job, "good": good} for n, job, good in ended])
    asked = ("job_tally", "children_follow")
    _, ((joined, touched),) = tx.run_together([(name, {"ended": document}) for name in asked])
    if joined:
        tx.announce(Topic.READY)
    if touched is not None:
        tx.stage("touched", touched)
        settle_touched(tx)
