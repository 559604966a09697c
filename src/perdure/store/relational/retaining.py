"""Removing what ended long enough ago."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from perdure.domain.limits import SECOND_US, WORKER_ACTIVE_MAX_US
from perdure.domain.retention import NOTHING, KindRetention, Retention
from perdure.domain.states import ENDED, GOOD_ENDS, JOB_ENDED, TaskState
from perdure.store.ledger import Swept
from perdure.store.relational import acts, breakers, gates
from perdure.store.relational.counting import ATTEMPTS, count_moves
from perdure.store.relational.lanes import remove_idle
from perdure.store.relational.transaction import Transaction, batch

_TABLES = (
    "attempts",
    "events",
    "logs",
    "progress",
    "checkpoints",
    "parts",
    "receipts",
    "items",
    "frontier",
    "edges",
    "ends",
)
"""What belongs to a task, before the task itself."""
_RESULT_TABLES = ("results", "parts", "receipts")
"""What belongs to a result."""


class _Line(NamedTuple):
    """The ends of one lane in one state, and what their kind says."""

    lane: int
    state: TaskState
    kind: KindRetention
    done_us: int
    done: int
    """The last end whose result has been removed ahead of its task: instant and number."""


def retain(tx: Transaction, retention: Retention, count: int) -> Swept:
    """Remove at most `count` tasks and results whose time is over, and what else has had its time."""
    lines = [_line_of(row) for row in tx.document("retain_lanes")]
    removed = _remove_alone(tx, retention, lines, count)
    removed += _remove_jobs(tx, retention, count - removed)
    removed += _remove_results(tx, lines, count - removed)
    tx.run("remove_keys", count=count)
    acts.forget(tx, count)
    tx.run("retain_fires", before=tx.now_us - retention.keep_us, count=count)
    tx.run("retain_skips", before=tx.now_us - retention.keep_us, count=count)
    gates.remove_unused(tx, count)
    breakers.forget(tx, count)
    tx.run("unique_over", count=count)
    if removed < count:
        remove_idle(tx, count)
    # However short retention is, a worker that is there stays between two heartbeats: removed, it would claim nothing.
    tx.run("remove_workers", before=tx.now_us - max(retention.keep_us, WORKER_ACTIVE_MAX_US))
    return Swept(removed, None, removed >= count)


def _line_of(row: list[Any]) -> _Line:
    lane, state, said, result, done_us, done = row
    by_state: Mapping[TaskState, int] = NOTHING
    if isinstance(said, dict):
        by_state = {TaskState(name): _us(seconds) for name, seconds in said.items() if name in ENDED}
    keep_us = None if said is None or isinstance(said, dict) else _us(said)
    kind = KindRetention(keep_us, by_state, None if result is None else _us(result))
    return _Line(lane, TaskState(state), kind, done_us, done)


def _us(seconds: float) -> int:
    return round(seconds * SECOND_US)


def _remove_alone(tx: Transaction, retention: Retention, lines: list[_Line], count: int) -> int:
    """Remove tasks without a job."""
    asked = [(each.lane, each.state, tx.now_us - retention.of_task(each.state, each.kind)) for each in lines]
    tasks = tx.document("retain_alone", batch=batch(asked), count=count)
    remove_tasks(tx, tasks)
    return len(tasks)


def _remove_jobs(tx: Transaction, retention: Retention, count: int) -> int:
    """Remove tasks of jobs that ended long enough ago; a job goes with the last of its tasks."""
    if count <= 0:
        return 0
    asked = [(state, tx.now_us - retention.of_job(state)) for state in sorted(JOB_ENDED)]
    jobs = tx.document("retain_jobs", batch=batch(asked), count=count)
    if not jobs:
        return 0
    tasks = tx.document("retain_job_tasks", batch=batch(jobs), count=count)
    remove_tasks(tx, tasks)
    tx.run("remove_jobs", batch=batch(jobs))
    tx.run("remove_job_events", batch=batch(jobs))
    return len(tasks)


def _remove_results(tx: Transaction, lines: list[_Line], count: int) -> int:
    """Remove results of tasks without a job that are to go before their tasks."""
    removed = 0
    for each in lines:
        if removed < count and each.state in GOOD_ENDS and each.kind.result_us is not None:
            removed += _remove_results_of(tx, each, tx.now_us - each.kind.result_us, count - removed)
    return removed


def _remove_results_of(tx: Transaction, line: _Line, before_us: int, count: int) -> int:
    place: dict[str, Any] = {"lane": line.lane, "state": line.state}
    done = {"done_us": line.done_us, "done": line.done}
    found = tx.document("retain_results", **place, **done, before=before_us, count=count)
    if found:
        document = batch([n for _, n in found])
        for table in _RESULT_TABLES:
            tx.run(f"remove_{table}", batch=document)
        finished_us, task = found[-1]
        tx.run("retain_results_mark", **place, finished_us=finished_us, task=task)
    return len(found)


def remove_tasks(tx: Transaction, numbers: list[int]) -> None:
    """Remove ended tasks with all that belongs to them, and count them out."""
    if not numbers:
        return
    document = batch(numbers)
    ended, attempts = tx.document("retain_tally", batch=document)
    tx.run("unique_leave", batch=document)
    tx.run("remove_unique_keys", batch=document)
    for table in _TABLES:
        tx.run(f"remove_{table}", batch=document)
    tx.run("remove_tasks", batch=document)
    moves = [(lane, state, None, gone) for lane, state, gone in ended]
    count_moves(tx, moves + [(lane, ATTEMPTS, None, gone) for lane, gone in attempts])
