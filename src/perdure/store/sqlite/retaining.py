"""Removing what ended long enough ago."""

from perdure.store.ledger import Swept
from perdure.store.sqlite.counting import ATTEMPTS, count_moves
from perdure.store.sqlite.transaction import Transaction, batch

_TABLES = ("attempts", "events", "progress", "checkpoints", "parts", "receipts", "items", "frontier", "edges", "ends")
"""What belongs to a task, before the task itself."""


def retain(tx: Transaction, keep_us: int, count: int) -> Swept:
    """Remove at most `count` tasks that ended longer than `keep_us` ago, and what else has had its time."""
    before = tx.now_us - keep_us
    alone = tx.document("retain_alone", before=before, count=count)
    remove_tasks(tx, alone)
    removed = len(alone) + _remove_jobs(tx, before, count - len(alone))
    tx.run("remove_keys", count=count)
    tx.run("remove_workers", before=before)
    return Swept(removed, None, removed >= count)


def _remove_jobs(tx: Transaction, before: int, count: int) -> int:
    """Remove tasks of jobs that ended long enough ago; a job goes with the last of its tasks."""
    if count <= 0:
        return 0
    jobs = tx.document("retain_jobs", before=before, count=count)
    if not jobs:
        return 0
    tasks = tx.document("retain_job_tasks", batch=batch(jobs), count=count)
    remove_tasks(tx, tasks)
    tx.run("remove_jobs", batch=batch(jobs))
    tx.run("remove_job_events", batch=batch(jobs))
    return len(tasks)


def remove_tasks(tx: Transaction, numbers: list[int]) -> None:
    """Remove ended tasks with all that belongs to them, and count them out."""
    if not numbers:
        return
    document = batch(numbers)
    ended, attempts = tx.document("retain_tally", batch=document)
    for table in _TABLES:
        tx.run(f"remove_{table}", batch=document)
    tx.run("remove_tasks", batch=document)
    moves = [(lane, state, None, gone) for lane, state, gone in ended]
    count_moves(tx, moves + [(lane, ATTEMPTS, None, gone) for lane, gone in attempts])
