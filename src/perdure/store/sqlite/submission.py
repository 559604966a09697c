"""Submitting tasks that have no job."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import apsw

from perdure.domain import limits
from perdure.domain.states import TaskState
from perdure.domain.task import Task
from perdure.errors import IdempotencyConflict, Invalid, Overloaded, PerdureError
from perdure.store.ledger import Submitted
from perdure.store.sqlite.bodies import hex_of_base64
from perdure.store.sqlite.counting import PENDING, QUEUED, count_moves
from perdure.store.sqlite.lanes import Lanes, lane_of
from perdure.store.sqlite.line import places
from perdure.store.sqlite.transaction import Transaction, batch
from perdure.store.wakeups import Topic

RETRY_AFTER_SECONDS = 5
"""What a refused submitter is told to wait."""

Answer = Submitted | PerdureError


def submit(tx: Transaction, tasks: Sequence[Task], lanes: Lanes, pending: bool = False) -> list[Answer]:
    """Store tasks. `pending`: even what is due only joins its lane later, by a duty (inside a caller's transaction)."""
    answers: list[Answer | None] = [None] * len(tasks)
    _refuse_overdue(tasks, answers)
    _answer_known_keys(tx, tasks, answers)
    _refuse_overload(tx, tasks, answers)
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
    _answer_twins(tasks, answers, states)
    return [
        answer if answer is not None else Submitted(task.id, states[task.id], False)
        for task, answer in zip(tasks, answers, strict=True)
    ]


def _known_ids(tx: Transaction, tasks: Sequence[Task]) -> list[Answer]:
    found = tx.document("task_known", batch=batch([(task.organization, task.id) for task in tasks]))
    return [Submitted(tasks[place].id, TaskState(state), True) for place, state in found]


def _refuse_overdue(tasks: Sequence[Task], answers: list[Answer | None]) -> None:
    for place, task in enumerate(tasks):
        if task.ttl_us is not None and task.ttl_us <= 0 and answers[place] is None:
            answers[place] = Invalid("the TTL has passed already: give more than 0 seconds", field="ttl")


def _answer_known_keys(tx: Transaction, tasks: Sequence[Task], answers: list[Answer | None]) -> None:
    keyed = [i for i, task in enumerate(tasks) if task.idempotency_key is not None and answers[i] is None]
    if not keyed:
        return
    rows = [(tasks[i].organization, tasks[i].principal, tasks[i].idempotency_key) for i in keyed]
    found = tx.document("idempotency_find", what="task", batch=batch(rows))
    known = {keyed[place]: (id, request_hash) for place, id, request_hash in found}
    same = {i: id for i, (id, request_hash) in known.items() if request_hash == tasks[i].request_hash}
    states = tx.document("task_states", batch=batch([(tasks[i].organization, id) for i, id in same.items()]))
    replayed = dict(zip(same, states, strict=True))
    for i, (id, _) in known.items():
        if i in replayed:
            answers[i] = Submitted(id, TaskState(replayed[i] or TaskState.SUCCEEDED), True)
        else:
            answers[i] = key_conflict(tasks[i].idempotency_key, "task_id", id)
    seen: dict[tuple[str, str, str | None], Task] = {}
    for i in keyed:
        if answers[i] is None:
            task = tasks[i]
            first = seen.setdefault((task.organization, task.principal, task.idempotency_key), task)
            if first is not task:
                answers[i] = _twin(first, task)


def _twin(first: Task, second: Task) -> Answer:
    if first.request_hash != second.request_hash:
        return key_conflict(second.idempotency_key, "task_id", first.id)
    return Submitted(first.id, TaskState.QUEUED, True)


def _answer_twins(tasks: Sequence[Task], answers: list[Answer | None], states: Mapping[str, TaskState]) -> None:
    """A replay of a task of the same call shares its fate: refused together, or in the same state."""
    refused = {
        (task.organization, task.principal, task.idempotency_key): answer
        for task, answer in zip(tasks, answers, strict=True)
        if isinstance(answer, Overloaded)
    }
    for i, (task, answer) in enumerate(zip(tasks, answers, strict=True)):
        if isinstance(answer, Submitted) and task.idempotency_key is not None:
            shown = answer._replace(state=states.get(answer.id, answer.state))
            answers[i] = refused.get((task.organization, task.principal, task.idempotency_key), shown)


def key_conflict(key: str | None, field: str, id: str) -> IdempotencyConflict:
    """The key was used for another request."""
    return IdempotencyConflict(
        f"idempotency key {key!r} was used for another request, which made {id}: use another key, or send that request",
        key=key,
        **{field: id},
    )


def _refuse_overload(tx: Transaction, tasks: Sequence[Task], answers: list[Answer | None]) -> None:
    check = admission(tx, {task.organization for task in tasks})
    if check is None:
        return
    for i, task in enumerate(tasks):
        if answers[i] is None:
            answers[i] = check(task.organization, {task.queue: 1})


def admission(tx: Transaction, organizations: set[str]) -> Callable[[str, dict[str, int]], Overloaded | None] | None:
    """A check that admits tasks (organization, how many by queue) within the depths; `None` where there are none."""
    if not tx.value("depth_peek"):
        return None
    rows = tx.document("depth_limits", batch=batch(sorted(organizations)))
    room = {(organization, type, name): depth - waiting for organization, type, name, depth, waiting in rows}

    def admit(organization: str, wanted: dict[str, int]) -> Overloaded | None:
        asked = {("queue", queue): count for queue, count in wanted.items()}
        asked["organization", organization] = sum(wanted.values())
        for (type, name), count in asked.items():
            left = room.get((organization, type, name))
            if left is not None and left < count:
                return Overloaded(
                    f"{type} {name!r} is full: {count} more would exceed its depth; "
                    f"try again in {RETRY_AFTER_SECONDS} s or raise its depth",
                    retry_after=RETRY_AFTER_SECONDS,
                    field=type,
                    name=name,
                )
        for (type, name), count in asked.items():
            if (organization, type, name) in room:
                room[organization, type, name] -= count
        return None

    return admit


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


def bind_keys(tx: Transaction, what: str, keyed: Sequence[tuple[str, str, str | None, str, str | None]]) -> None:
    """Bind idempotency keys to what they made: rows of organization, principal, key, id, request hash."""
    rows = [row for row in keyed if row[2] is not None]
    if rows:
        tx.run("idempotency_insert", what=what, batch=batch(rows), life=limits.IDEMPOTENCY_KEY_LIFE_US)
