"""Submitting jobs: each with all its tasks and edges, or not at all."""

from collections import Counter
from collections.abc import Sequence

from perdure.domain.task import Job
from perdure.errors import PerdureError
from perdure.store.ledger import JobSubmitted
from perdure.store.relational.admission import admission
from perdure.store.relational.ending import enter
from perdure.store.relational.known_jobs import known_job
from perdure.store.relational.lanes import Lanes
from perdure.store.relational.transaction import batch
from perdure.store.relational.unique import refuse_job_tasks
from perdure.store.sqlite.keys import bind_keys
from perdure.store.sqlite.submission import write_tasks
from perdure.store.sqlite.transaction import Transaction


def submit_jobs(tx: Transaction, jobs: Sequence[Job], lanes: Lanes) -> list[JobSubmitted | PerdureError]:
    """Store jobs one after the other: a later one of the same call sees the keys of an earlier one."""
    return [_submit_job(tx, job, lanes) for job in jobs]


def _submit_job(tx: Transaction, job: Job, lanes: Lanes) -> JobSubmitted | PerdureError:
    known = known_job(tx, job)
    if known is not None:
        return known
    check = admission(tx, {job.organization})
    if check is not None:
        refusal = check(job.organization, Counter(task.terms.queue for task in job.tasks))
        if refusal is not None:
            return refusal
    held = refuse_job_tasks(tx, job.tasks)
    if held is not None:
        return held
    _write_job(tx, job, lanes)
    return JobSubmitted(job.id, {task.rare.name or "": task.id for task in job.tasks}, False)


def _write_job(tx: Transaction, job: Job, lanes: Lanes) -> None:
    number = tx.value("job_last") + 1
    row = (
        number,
        job.organization,
        job.id,
        job.name,
        job.policy,
        job.principal,
        job.initiator,
        job.metadata,
        job.idempotency_key,
        len(job.tasks),
    )
    tx.run("job_insert", batch=batch([row]))
    bind_keys(tx, "job", [(job.organization, job.principal, job.idempotency_key, job.id, job.request_hash)])
    _, first, gated = write_tasks(tx, job.tasks, lanes, job=number)
    places = {task.id: first + place for place, task in enumerate(job.tasks)}
    if job.edges:
        rows = [(places[edge.parent], places[edge.child], edge.policy) for edge in job.edges]
        tx.run("edge_insert", batch=batch(rows))
    if gated:
        enter(tx, gated)
