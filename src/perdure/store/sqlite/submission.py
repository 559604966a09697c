"""Submitting tasks that have no job."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import apsw

from perdure.domain.states import TaskState
from perdure.domain.task import Task
from perdure.store.ledger import Submitted
from perdure.store.relational.admission import (
    Answer,
    answer_known_keys,
    answer_twins,
    bind_keys,
    refuse_overdue,
    refuse_overload,
)
from perdure.store.relational.bodies import hex_of_base64
from perdure.store.relational.counting import PENDING, QUEUED, count_moves
from perdure.store.relational.lanes import Lanes, lane_of
from perdure.store.relational.line import places
from perdure.store.relational.transaction import batch
from perdure.store.sqlite.transaction import Transaction
from perdure.store.wakeups import Topic


def submit(tx: Transaction, tasks: Sequence[Task], lanes: Lanes, pending: bool = False) -> list[Answer]:
    """Store tasks. `pending`: even what is due only joins its lane later, by a duty (inside a caller's transaction)."""
    answers: list[Answer | None] = [None] * len(tasks)
    refuse_overdue(tasks, answers)
    answer_known_keys(tx, tasks, answers)
    refuse_overload(tx, tasks, answers)
    fresh = [task for task, answer in zip(tasks, answers, strict=True) if answer is None]
    try:
        states = dict(
            zip([task.id for task in fresh], write_tasks(tx, fresh, lanes, pending=pending).states, strict=True)
        )
    except apsw.ConstraintError:
        # The same task again is a repeated call whose answer was lost. It comes alone at last: flushes are halved.
        if len(tasks) > 1 or not (known := _known_ids(tx, tasks)):
            raise
        return known
    bind_keys(tx, "task", [(t.organization, t.principal, t.idempotency_key, t.id, t.request_hash) for t in fresh])
    answer_twins(tasks, answers, states)
    return [
        answer if answer is not None else Submitted(task.id, states[task.id], False)
        for task, answer in zip(tasks, answers, strict=True)
    ]


def _known_ids(tx: Transaction, tasks: Sequence[Task]) -> list[Answer]:
    found = tx.document("task_known", batch=batch([(task.organization, task.id) for task in tasks]))
    return [Submitted(tasks[place].id, TaskState(state), True) for place, state in found]


class Written(NamedTuple):
    """The states that tasks begin in, and the number of the first of them; the others follow in order."""

    states: list[TaskState]
    first: int


def write_tasks(
    tx: Transaction,
    tasks: Sequence[Task],
    lanes: Lanes,
    *,
    pending: bool = False,
    job: int | None = None,
) -> Written:
    """Write specifications and live rows."""
    if not tasks:
        return Written([], 0)
    due = [_due_us(task, tx.now_us) for task in tasks]
    queued = [not pending and task.waits == 0 and at <= tx.now_us for task, at in zip(tasks, due, strict=True)]
    numbers = lanes.numbers(tx, {lane_of(task) for task in tasks})
    seq = 0
    templates: dict[_Template, list[tuple[Any, ...]]] = {}
    moves: Counter[tuple[int, str]] = Counter()
    for place, (task, due_us, joins) in enumerate(zip(tasks, due, queued, strict=True)):
        state = QUEUED if joins else PENDING
        seq += joins
        lane = numbers[lane_of(task)]
        moves[lane, state] += 1
        templates.setdefault(_template(task, lane, job), []).append(
            _own(place, task, state, seq if joins else None, due_us)
        )
    first = _write_templates(tx, templates, joining=seq)
    count_moves(tx, [(lane, None, state, count) for (lane, state), count in moves.items()])
    tx.announce(Topic.READY)
    return Written([TaskState.QUEUED if each else TaskState.PENDING for each in queued], first)


def _due_us(task: Task, now: int) -> int:
    if task.delay_us is not None:
        return now + task.delay_us
    return now if task.run_at_us is None else max(now, task.run_at_us)


class _Template(NamedTuple):
    """What tasks of one call have in common is bound once, not taken apart for each."""

    organization: str
    lane: int
    job: int | None
    encoding: str
    principal: str
    initiator: str
    ttl_us: int | None
    execution_limit_us: int
    timeout_us: int | None
    lease_us: int
    max_attempts: int
    max_losses: int
    on_loss: str
    rule: str
    if_failed: str
    retry: str | None


def _template(task: Task, lane: int, job: int | None) -> _Template:
    return _Template(
        task.organization,
        lane,
        job,
        task.encoding,
        task.principal,
        task.initiator,
        task.ttl_us,
        task.execution_limit_us,
        task.timeout_us,
        task.lease_us,
        task.max_attempts,
        task.max_losses,
        task.on_loss,
        task.trigger,
        task.if_failed,
        task.retry,
    )


def _own(place: int, task: Task, state: str, seq: int | None, due_us: int) -> tuple[Any, ...]:
    """What a task has of its own, in the order in which `task_insert` and `live_insert` read it."""
    payload = task.payload if task.encoding == "json" else hex_of_base64(task.payload)
    row = (place, task.id, payload, state, seq, due_us, task.waits)
    rare = (task.name, task.run_at_us, task.idempotency_key, task.request_hash, task.options)
    return row if rare == _NOTHING_RARE else row + rare


_NOTHING_RARE = (None,) * 5


def _write_templates(tx: Transaction, templates: Mapping[_Template, list[tuple[Any, ...]]], joining: int) -> int:
    """Specifications first: a task that exists already shows there, before anything else has changed."""
    first = int(tx.value("task_last")) + 1
    shared = [(batch(rows), template._asdict()) for template, rows in templates.items()]
    for document, template in shared:
        tx.run("task_insert", batch=document, first=first, **template)
    before = places(tx, joining) if joining else 0
    for document, template in shared:
        tx.run("live_insert", batch=document, first=first, before=before, **template)
    return first
