"""Retrying jobs: what failed runs again, with all that was cancelled for it."""

from typing import Any

from perdure.domain.states import TaskState
from perdure.errors import Conflict, NotFound, Redacted
from perdure.store.job_ledger import JobRetried
from perdure.store.relational.redriving import Again, run_again
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.relational.unique import take_again


def retry_job(tx: Transaction, organization: str, job_id: str, actor: str) -> JobRetried:
    """Run again what failed of a job. The tasks are locked before the job, as everywhere."""
    found = tx.document("job_read", organization=organization, id=job_id)
    if found is None:
        raise NotFound(f"there is no job {job_id}: check its id", what="job", id=job_id)
    number, open_tasks, stopping, initiator = found
    if open_tasks and stopping is not None:
        raise Conflict(
            f"job {job_id} is being cancelled: retry it once it has ended, with {open_tasks} tasks to go", job_id=job_id
        )
    rows: list[list[Any]] = tx.document("retry_look", job=number, stopped=stopping == "failure")
    failed = {row[0]: row for row in rows if row[1] != TaskState.CANCELLED}
    if not failed:
        raise Conflict(f"nothing of job {job_id} has failed: there is nothing to retry", job_id=job_id)
    _refuse_redacted(job_id, list(failed.values()))
    held = take_again(tx, sorted(failed))
    if held:
        raise next(iter(held.values()))
    tx.document("job_look", organization=organization, id=job_id)
    stopped = [
        [n, lane, state, task_organization, generation, task_initiator, actor]
        for n, state, _, lane, _, generation, task_initiator, task_organization, _ in rows
        if n not in failed
    ]
    # One line of the job's history tells of them all, and each has its own.
    chosen = {n: Again(actor, None, [*row[:4], None, *row[5:8]]) for n, row in failed.items()}
    revived = run_again(tx, chosen, stopped)
    told = {"redriven": len(failed), "revived": revived}
    event = (organization, None, number, 1, "retried", actor, initiator, batch(told))
    tx.run("event_insert", batch=batch([event]))
    return JobRetried(len(failed), revived)


def _refuse_redacted(job_id: str, rows: list[list[Any]]) -> None:
    redacted = [row[8] for row in rows if row[2]]
    if redacted:
        raise Redacted(
            f"the payload of task {redacted[0]} of job {job_id} was removed: redrive it with a new one first",
            task_id=redacted[0],
        )
