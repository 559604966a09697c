"""Cancelling: what waits ends at once, what is held is asked to stop."""

from collections.abc import Sequence
from typing import Any

from perdure.domain.states import HELD, WAITING, Reason, TaskState
from perdure.errors import NotFound
from perdure.store.ledger import CancelAnswer, Cancellation, Cancelled, Swept
from perdure.store.relational.counting import count_moves
from perdure.store.relational.ending import cancel_held_rows, end_waiting, leave
from perdure.store.relational.looking import look
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.wakeups import Topic


def cancel(tx: Transaction, cancellations: Sequence[Cancellation]) -> list[Cancelled]:
    """Cancel tasks; the first request for a task is kept."""
    looked = look(tx, "cancel_look", [(each.organization, each.task_id) for each in cancellations])
    answers: list[Cancelled] = []
    waiting: dict[int, tuple[Any, ...]] = {}
    held: dict[int, tuple[Any, ...]] = {}
    for each, (n, state, reason, lane, _job, _generation, _initiator) in zip(cancellations, looked, strict=True):
        row = (n, each.actor, each.reason, each.text, each.note, each.grace_us, lane, state)
        if n in waiting or n in held:
            answers.append(Cancelled(CancelAnswer.ALREADY, _after(n in held), Reason(each.reason)))
        elif state in WAITING:
            waiting[n] = row
            answers.append(Cancelled(CancelAnswer.CANCELLED, TaskState.CANCELLED, each.reason))
        elif state in HELD and state != TaskState.CANCELLING:
            held[n] = row
            answers.append(Cancelled(CancelAnswer.CANCELLING, TaskState.CANCELLING, each.reason))
        else:
            answers.append(_too_late(state, reason))
    if waiting:
        tx.run("cancel_waiting", batch=batch(list(waiting.values())))
        end_waiting(tx)
    cancel_held_rows(tx, list(held.values()))
    return answers


def _after(held: bool) -> TaskState:
    return TaskState.CANCELLING if held else TaskState.CANCELLED


def _too_late(state: str | None, reason: str | None) -> Cancelled:
    if state is None:
        return Cancelled(CancelAnswer.NOT_FOUND, None, None)
    known = None if reason is None else Reason(reason)
    already = state in (TaskState.CANCELLED, TaskState.CANCELLING)
    return Cancelled(CancelAnswer.ALREADY if already else CancelAnswer.ENDED, TaskState(state), known)


def cancel_job(tx: Transaction, organization: str, job_id: str, actor: str, text: str | None) -> bool:
    """Note that a job shall stop."""
    found = tx.document("job_look", organization=organization, id=job_id)
    if found is None:
        raise NotFound(f"there is no job {job_id}", what="job", id=job_id)
    job, _state, open_tasks, _stopping, initiator = found
    tx.run("job_stop", job=job, actor=actor, text=text)
    if tx.changes():
        row = (organization, None, job, 1, "cancel_requested", actor, initiator, batch({"text": text}))
        tx.run("event_insert", batch=batch([row]))
        tx.announce(Topic.READY | Topic.FOLLOW)
    return bool(open_tasks)


def purge_queue(tx: Transaction, organization: str, queue: str, actor: str, count: int) -> Swept:
    """Cancel what waits in a queue, oldest first."""
    tx.run("purge_stage", organization=organization, queue=queue, actor=actor, count=count)
    moved = end_waiting(tx)
    return Swept(moved, None, moved >= count)


def postpone(tx: Transaction, organization: str, task_id: str, run_at_us: int) -> bool:
    """Give a waiting task a new time to run at."""
    n, state, _, lane, _, generation, initiator = look(tx, "cancel_look", [(organization, task_id)])[0]
    if state not in (TaskState.PENDING, TaskState.QUEUED):
        return False
    queued_us = tx.value("postpone_look", n=n)
    tx.run("postpone", n=n, due=run_at_us)
    if not tx.changes():
        return False
    if state != TaskState.PENDING:
        count_moves(tx, [(lane, state, str(TaskState.PENDING), 1)])
    data = batch({"until_us": run_at_us, "queued_us": queued_us})
    row = (organization, n, None, generation, "postponed", "system", initiator, data)
    tx.run("event_insert", batch=batch([row]))
    tx.announce(Topic.READY | Topic.DUE)
    leave(tx, [(n, True)])
    return True
