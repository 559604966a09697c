"""Submitting tasks that have no job."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from psycopg import errors

from perdure.domain import limits
from perdure.domain.states import TaskState
from perdure.domain.task import Job, Task
from perdure.store.ledger import Submitted
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.admission import (
    Answer,
    answer_known_keys,
    answer_twins,
    refuse_overdue,
    refuse_overload,
)
from perdure.store.relational.bodies import hex_of_base64
from perdure.store.relational.lanes import Lanes, lane_of
from perdure.store.relational.sharing import shared_of, specification_of
from perdure.store.relational.transaction import batch
from perdure.store.wakeups import Topic


def submit(tx: Transaction, tasks: Sequence[Task], lanes: Lanes, pending: bool = False) -> list[Answer]:
    """Store tasks. `pending`: even what is due only joins its lane later, by a duty (inside a caller's transaction).

    Depths are looked at where the write finds that there are any; keys are taken before the tasks are written, so that
    of two transactions with the same key one waits for the other and then answers with its task.
    """
    answers: list[Answer | None] = [None] * len(tasks)
    refuse_overdue(tasks, answers)
    keyed = any(task.idempotency_key is not None for task in tasks)
    if keyed:
        answer_known_keys(tx, tasks, answers)
        refuse_overload(tx, tasks, answers)
        take_keys(tx, "task", [task for task, answer in zip(tasks, answers, strict=True) if answer is None])
    states = _write_unanswered(tx, tasks, answers, lanes, pending=pending, admitted=keyed)
    if keyed:
        answer_twins(tasks, answers, states)
    return [answer for answer in answers if answer is not None]


def take_keys(tx: Transaction, what: str, asked: Sequence[Task | Job]) -> None:
    """Bind the idempotency keys of what is about to be written."""
    rows = [
        (each.organization, each.principal, each.idempotency_key, each.id, each.request_hash)
        for each in asked
        if each.idempotency_key is not None
    ]
    if not rows:
        return
    taken = tx.document("idempotency_take", what=what, batch=batch(rows), life=limits.IDEMPOTENCY_KEY_LIFE_US)
    if len(taken) < len(rows):
        raise collided("another transaction has taken an idempotency key meanwhile")


class Collided(errors.SerializationFailure):
    """Another transaction was first: run again, this one finds what that has written."""


def collided(fact: str) -> Collided:
    """The error of a transaction that is to be run again."""
    return Collided(fact)


def _write_unanswered(
    tx: Transaction,
    tasks: Sequence[Task],
    answers: list[Answer | None],
    lanes: Lanes,
    *,
    pending: bool,
    admitted: bool,
) -> dict[str, TaskState]:
    """Write and answer what has no answer yet. Returns the states that new tasks begin in, by id."""
    states: dict[str, TaskState] = {}
    while places := [place for place, answer in enumerate(answers) if answer is None]:
        # A task that is in the call twice comes in another round the second time, and is a repeat then.
        once = {(tasks[place].organization, tasks[place].id): place for place in reversed(places)}
        places = sorted(once.values())
        written = write_tasks(tx, [tasks[place] for place in places], lanes, pending=pending, admitted=admitted)
        if written is None:
            refuse_overload(tx, tasks, answers)
            admitted = True
            continue
        for place, state in zip(places, written.states, strict=True):
            task = tasks[place]
            states[task.id] = state
            answers[place] = Submitted(task.id, state, False)
        if written.known:
            _answer_known(tx, tasks, answers, [places[known] for known in written.known])
    return states


def _answer_known(tx: Transaction, tasks: Sequence[Task], answers: list[Answer | None], places: list[int]) -> None:
    """The same task again is a repeated call whose answer was lost."""
    asked = batch([(tasks[place].organization, tasks[place].id) for place in places])
    for place, state in zip(places, tx.document("task_states", batch=asked), strict=True):
        answers[place] = Submitted(tasks[place].id, TaskState(state), True)


class Written(NamedTuple):
    """What became of tasks, by their places: the states that they begin in, which existed already, their numbers."""

    states: list[TaskState]
    known: list[int]
    numbers: list[int] | None


def write_tasks(
    tx: Transaction,
    tasks: Sequence[Task],
    lanes: Lanes,
    *,
    pending: bool = False,
    job: int | None = None,
    admitted: bool = False,
) -> Written | None:
    """Write specifications, live rows and counts in one statement. `None`: depths have to be looked at first."""
    groups, states = _grouped(tx, tasks, lanes, job, pending=pending)
    try:
        ((free, known, numbers),) = tx.run("submit", batch=batch(groups), admitted=admitted, numbered=job is not None)
    except errors.UniqueViolation as error:
        raise collided("another transaction has written the same task meanwhile") from error
    if not free:
        return None
    tx.announce(Topic.READY)
    return Written(states, sorted(known or ()), numbers)


def _grouped(
    tx: Transaction, tasks: Sequence[Task], lanes: Lanes, job: int | None, *, pending: bool
) -> tuple[list[tuple[Any, list[Any]]], list[TaskState]]:
    """What tasks share is sent once for them all: groups of that and of what each has of its own; and their states."""
    numbers = lanes.numbers(tx, {lane_of(task) for task in tasks})
    groups: dict[tuple[Any, ...], tuple[Any, list[Any]]] = {}
    states = []
    before: tuple[Any, ...] | None = None
    own: list[Any] = []
    for place, task in enumerate(tasks):
        shared = shared_of(task)
        if shared != before:
            before = shared
            group = groups.get(shared)
            if group is None:
                group = groups[shared] = (_template(task, numbers[lane_of(task)], job), [])
            own = group[1]
        due_us = _due_us(task, tx.now_us)
        queued = not pending and task.waits == 0 and due_us <= tx.now_us
        states.append(TaskState.QUEUED if queued else TaskState.PENDING)
        own.append(_own(place, task, queued, due_us, tx.now_us))
    return list(groups.values()), states


def _due_us(task: Task, now: int) -> int:
    if task.delay_us is not None:
        return now + task.delay_us
    return now if task.run_at_us is None else max(now, task.run_at_us)


def _template(task: Task, lane: int, job: int | None) -> tuple[Any, ...]:
    """What tasks of one call have in common, in the order in which `submit` reads it."""
    organization, *written = specification_of(task)
    return (organization, lane, job, *written)


def _own(place: int, task: Task, queued: bool, due_us: int, now: int) -> tuple[Any, ...]:
    """What a task has of its own, in the order in which `submit` reads it."""
    payload = task.payload if task.encoding == "json" else hex_of_base64(task.payload)
    rare = (task.name, task.run_at_us, task.idempotency_key, task.request_hash, task.options)
    if rare != _NOTHING_RARE:
        return (place, task.id, payload, None if queued else "pending", due_us, task.waits, *rare)
    if queued and due_us == now:
        return (place, task.id, payload)
    return (place, task.id, payload, None if queued else "pending", due_us, task.waits)


_NOTHING_RARE = (None,) * 5
