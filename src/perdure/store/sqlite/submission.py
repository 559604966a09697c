"""Submitting tasks that have no job."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from perdure.domain import limits
from perdure.domain.states import TaskState
from perdure.domain.task import Task
from perdure.errors import IdempotencyConflict, Invalid, Overloaded, PerdureError
from perdure.store.ledger import Submitted
from perdure.store.sqlite.bodies import hex_of_base64
from perdure.store.sqlite.counting import PENDING, QUEUED, count_moves, count_totals
from perdure.store.sqlite.lanes import Lane, Lanes, lane_of
from perdure.store.sqlite.line import places
from perdure.store.sqlite.transaction import Transaction, batch
from perdure.store.wakeups import Topic

RETRY_AFTER_SECONDS = 5
"""What a refused submitter is told to wait."""

Answer = Submitted | PerdureError


def submit(tx: Transaction, tasks: Sequence[Task], lanes: Lanes, pending: bool = False) -> list[Answer]:
    """Store tasks. `pending`: even what is due only joins its lane later, by a duty (inside a caller's transaction)."""
    answers: list[Answer | None] = [None] * len(tasks)
    _answer_known_ids(tx, tasks, answers)
    _refuse_overdue(tasks, answers)
    _answer_known_keys(tx, tasks, answers)
    _refuse_overload(tx, tasks, answers)
    fresh = [task for task, answer in zip(tasks, answers, strict=True) if answer is None]
    states = iter(write_tasks(tx, fresh, lanes, pending=pending) if fresh else ())
    bind_keys(tx, "task", [(t.organization, t.principal, t.idempotency_key, t.id, t.request_hash) for t in fresh])
    _answer_twins(tasks, answers)
    return [
        answer if answer is not None else Submitted(task.id, next(states), False)
        for task, answer in zip(tasks, answers, strict=True)
    ]


def _answer_known_ids(tx: Transaction, tasks: Sequence[Task], answers: list[Answer | None]) -> None:
    """The same task again is a repeated call whose answer was lost."""
    asked = batch([(task.organization, task.id) for task in tasks])
    for place, state in tx.document("task_known", batch=asked):
        answers[place] = Submitted(tasks[place].id, TaskState(state), True)


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


def _answer_twins(tasks: Sequence[Task], answers: list[Answer | None]) -> None:
    """A replay of a task of the same call shares its fate: refused together."""
    refused = {
        (task.organization, task.principal, task.idempotency_key): answer
        for task, answer in zip(tasks, answers, strict=True)
        if isinstance(answer, Overloaded)
    }
    for i, (task, answer) in enumerate(zip(tasks, answers, strict=True)):
        if isinstance(answer, Submitted) and task.idempotency_key is not None:
            answers[i] = refused.get((task.organization, task.principal, task.idempotency_key), answer)


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
    rows = tx.document("depth_limits", batch=batch(sorted(organizations)))
    if not rows:
        return None
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


def write_tasks(
    tx: Transaction,
    tasks: Sequence[Task],
    lanes: Lanes,
    *,
    pending: bool = False,
    job: int | None = None,
    first: int | None = None,
) -> list[TaskState]:
    """Write specifications and live rows; returns the states that tasks begin in. `first` numbers the first."""
    now = tx.now_us
    number = (tx.value("task_last") + 1) if first is None else first
    due = [_due_us(task, now) for task in tasks]
    queued = [not pending and task.waits == 0 and at <= now for task, at in zip(tasks, due, strict=True)]
    seq = places(tx, sum(queued)) if any(queued) else 0
    templates = _Templates(lanes.numbers(tx, {lane_of(task) for task in tasks}), job)
    rows = []
    moves: Counter[tuple[int, str]] = Counter()
    for task, due_us, joins in zip(tasks, due, queued, strict=True):
        state = QUEUED if joins else PENDING
        seq += joins
        lane, template = templates.place(task)
        moves[lane, state] += 1
        rows.append(_own(task, template, state, seq if joins else None, due_us))
    document, shared = batch(rows), batch(list(templates.rows))
    tx.run("task_insert", batch=document, templates=shared, first=number)
    tx.run("live_insert", batch=document, templates=shared, first=number)
    count_moves(tx, [(lane, None, state, count) for (lane, state), count in moves.items()])
    count_totals(tx, tasks=len(tasks))
    tx.announce(Topic.READY)
    return [TaskState.QUEUED if each else TaskState.PENDING for each in queued]


def _due_us(task: Task, now: int) -> int:
    if task.delay_us is not None:
        return now + task.delay_us
    return now if task.run_at_us is None else max(now, task.run_at_us)


class _Templates:
    """What tasks of one call have in common is taken apart once, not once for each."""

    def __init__(self, lanes: Mapping[Lane, int], job: int | None) -> None:
        self._lanes = lanes
        self._job = job
        self.rows: dict[tuple[Any, ...], int] = {}

    def place(self, task: Task) -> tuple[int, int]:
        """The task's lane, and the place of its template."""
        lane = self._lanes[lane_of(task)]
        shared = (
            task.organization,
            lane,
            self._job,
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
            task.options,
        )
        return lane, self.rows.setdefault(shared, len(self.rows))


def _own(task: Task, template: int, state: str, seq: int | None, due_us: int) -> tuple[object, ...]:
    """What a task has of its own, in the order in which `task_insert` and `live_insert` read it."""
    payload = task.payload if task.encoding == "json" else hex_of_base64(task.payload)
    rare = (task.name, task.run_at_us, task.idempotency_key, task.request_hash)
    row = (task.id, payload, template, state, seq, due_us, task.waits)
    return row if rare == _NOTHING_RARE else row + rare


_NOTHING_RARE = (None, None, None, None)


def bind_keys(tx: Transaction, what: str, keyed: Sequence[tuple[str, str, str | None, str, str | None]]) -> None:
    """Bind idempotency keys to what they made: rows of organization, principal, key, id, request hash."""
    rows = [row for row in keyed if row[2] is not None]
    if rows:
        tx.run("idempotency_insert", what=what, batch=batch(rows), life=limits.IDEMPOTENCY_KEY_LIFE_US)
