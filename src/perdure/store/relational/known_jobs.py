"""Jobs that are sent again: by their id after a lost answer, or by their idempotency key."""

from perdure.domain.task import Job
from perdure.errors import PerdureError
from perdure.store.ledger import JobSubmitted
from perdure.store.relational.admission import key_conflict
from perdure.store.relational.transaction import Transaction, batch


def known_job(tx: Transaction, job: Job) -> JobSubmitted | PerdureError | None:
    """The answer to a job that is there already; `None` for a new one."""
    return _known_id(tx, job) or _known_key(tx, job)


def _known_id(tx: Transaction, job: Job) -> JobSubmitted | None:
    """The same job again is a repeated call whose answer was lost."""
    names = tx.document("job_task_ids", organization=job.organization, id=job.id)
    return JobSubmitted(job.id, dict(names), True) if names else None


def _known_key(tx: Transaction, job: Job) -> JobSubmitted | PerdureError | None:
    if job.idempotency_key is None:
        return None
    asked = batch([(job.organization, job.principal, job.idempotency_key)])
    found = tx.document("idempotency_find", what="job", batch=asked)
    if not found:
        return None
    _, id, request_hash = found[0]
    if request_hash != job.request_hash:
        return key_conflict(job.idempotency_key, "job_id", id)
    names = tx.document("job_task_ids", organization=job.organization, id=id)
    return JobSubmitted(id, dict(names), True)
