"""What can be read of jobs."""

from collections.abc import Sequence

import msgspec

from perdure.errors import NotFound
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.views import JobProgress, JobTaskView, JobView

_decode_jobs = msgspec.json.Decoder(list[JobView]).decode
_decode_tasks = msgspec.json.Decoder(list[JobTaskView]).decode
_decode_open = msgspec.json.Decoder(dict[str, int]).decode


def cards(tx: Transaction, organization: str, numbers: Sequence[int]) -> list[JobView]:
    """Jobs in the order of their numbers. Counts are those of ends: `failed` holds every bad end."""
    return _decode_jobs(tx.value("view_jobs", organization=organization, js=batch(numbers)))


def job(tx: Transaction, organization: str, job_id: str) -> JobView | None:
    """One job, or `None`. Its counts tell the unfinished states too: they are counted over what is open."""
    j = tx.value("view_job_number", organization=organization, job=job_id)
    if j is None:
        return None
    (card,) = cards(tx, organization, [j])
    unfinished = _decode_open(tx.value("view_job_open", organization=organization, j=j)) if card.open else {}
    return msgspec.structs.replace(card, counts={**card.counts, **unfinished})


def job_progress(tx: Transaction, organization: str, job_id: str) -> JobProgress | None:
    """How far one job is, from its counters and from what its handlers told."""
    card = job(tx, organization, job_id)
    if card is None:
        return None
    j = tx.value("view_job_number", organization=organization, job=job_id)
    items_done, items_total = tx.document("view_job_progress", organization=organization, j=j)
    return JobProgress(
        id=card.id,
        state=card.state,
        total=card.total,
        ended=card.total - card.open,
        counts=card.counts,
        items_done=None if items_done is None else int(items_done),
        items_total=None if items_total is None else int(items_total),
        created_us=card.created_us,
        started_us=card.started_us,
        failing_since_us=card.failing_since_us,
        finished_us=card.finished_us,
    )


def job_tasks(tx: Transaction, organization: str, job_id: str) -> list[JobTaskView]:
    """All tasks of a job in the order of submission. Raises `NotFound`."""
    j = tx.value("view_job_number", organization=organization, job=job_id)
    if j is None:
        raise no_such_job(job_id)
    return _decode_tasks(tx.value("view_job_tasks", organization=organization, j=j))


def no_such_job(job_id: str) -> NotFound:
    """The error for a job that is absent, or another organization's."""
    return NotFound(f"there is no job {job_id}: check its id", what="job", id=job_id)
