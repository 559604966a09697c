"""A job's own history, derived from its row; what the row does not tell is kept as explicit events."""

from collections.abc import Iterator
from typing import Any

import msgspec

from perdure.domain.policy import SYSTEM
from perdure.domain.states import JobState
from perdure.store.relational.history_lines import EventRow, Line, Rank, in_order
from perdure.store.relational.job_views import no_such_job
from perdure.store.relational.transaction import Transaction
from perdure.store.views import EventView


class _Job(msgspec.Struct):
    created_us: int
    started_us: int | None
    finished_us: int | None
    failing_since_us: int | None
    state: JobState
    total: int
    principal: str
    initiator: str
    stopping: str | None
    cancel_us: int | None
    cancel_actor: str | None
    cancel_text: str | None
    events: list[EventRow]


_KEPT = {"failing": Rank.TOLD, "ended": Rank.ENDED}
"""Events that stand for what a job's row told before the job ran again."""

_decode = msgspec.json.Decoder(_Job).decode


def of_job(tx: Transaction, organization: str, job_id: str) -> list[EventView]:
    """A job's history, in order. Raises `NotFound`."""
    text = tx.value("view_job_history", organization=organization, job=job_id)
    if text is None:
        raise no_such_job(job_id)
    lines = {line.place(): line for line in _lines(_decode(text))}
    return in_order(lines.values())


def _lines(job: _Job) -> Iterator[Line]:
    def line(at_us: int, rank: int, type: str, actor: str, **data: Any) -> Line:
        return Line(at_us, 1, 0, rank, 0, type, actor, job.initiator, data)

    added = sum((event.data or {}).get("tasks", 0) for event in job.events if event.type == "grown")
    yield line(job.created_us, Rank.SUBMITTED, "submitted", job.principal, tasks=job.total - added)
    if job.started_us is not None:
        yield line(job.started_us, Rank.STARTED, "started", SYSTEM)
    if job.failing_since_us is not None:
        yield line(job.failing_since_us, Rank.TOLD, "failing", SYSTEM)
    told_of = {event.type for event in job.events}
    if job.cancel_us is not None and "cancel_requested" not in told_of:
        told = {"text": job.cancel_text, "because": job.stopping}
        yield line(job.cancel_us, Rank.CANCEL_REQUESTED, "cancel_requested", job.cancel_actor or SYSTEM, **told)
    if job.finished_us is not None:
        yield line(job.finished_us, Rank.ENDED, "ended", SYSTEM, state=job.state)
    for event in job.events:
        # A job that ran again keeps what its row told before: the same line, whichever row tells it.
        rank = _KEPT.get(event.type)
        data = {"task": event.task, **(event.data or {})}
        initiator = event.initiator or job.initiator
        place = (Rank.WAITED, event.e) if rank is None else (rank, 0)
        yield Line(event.at_us, 1, 0, *place, event.type, event.actor, initiator, data)
