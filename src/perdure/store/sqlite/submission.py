"""Submitting tasks that have no job."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from itertools import repeat
from typing import Any, NamedTuple

import apsw

from perdure.domain.states import TaskState
from perdure.domain.task import NOTHING_RARE, Rare, Task, Terms
from perdure.domain.unique import SubmitOutcome
from perdure.store.ledger import Submitted
from perdure.store.relational.admission import (
    Answer,
    answer_known_keys,
    answer_twins,
    bindings,
    refuse_overdue,
    refuse_overload,
)
from perdure.store.relational.bodies import hex_of_base64
from perdure.store.relational.counting import QUEUED, count_moves
from perdure.store.relational.ending import enter
from perdure.store.relational.gates import has_gates
from perdure.store.relational.lanes import Lanes, lane_of
from perdure.store.relational.line import places
from perdure.store.relational.sharing import specification_of
from perdure.store.relational.transaction import batch
from perdure.store.relational.unique import deciding
from perdure.store.sqlite.keys import bind_keys
from perdure.store.sqlite.transaction import Transaction
from perdure.store.wakeups import Topic

CREATED = SubmitOutcome.CREATED


def submit(tx: Transaction, tasks: Sequence[Task], lanes: Lanes, pending: bool = False) -> list[Answer]:
    """Store tasks. `pending`: even what is due only joins its lane later, by a duty (inside a caller's transaction)."""
    answers: list[Answer | None] = [None] * len(tasks)
    refuse_overdue(tasks, answers)
    answer_known_keys(tx, tasks, answers)
    unique = deciding(tx, tasks, answers)
    if unique is None:
        refuse_overload(tx, tasks, answers)
    fresh = tasks
    if any(answers):
        fresh = [task for task, answer in zip(tasks, answers, strict=True) if answer is None]
    try:
        written = write_tasks(tx, fresh, lanes, pending=pending)
    except apsw.ConstraintError:
        # The same task again is a repeated call whose answer was lost. It comes alone at last: flushes are halved.
        if len(tasks) > 1 or not (known := _known_ids(tx, tasks)):
            raise
        return known
    states = _entered(tx, written, pending)
    if any(task.rare.idempotency_key is not None for task in tasks):
        bind_keys(tx, "task", bindings(tasks, answers))
        answer_twins(tasks, answers, {task.id: state for task, state in zip(fresh, states, strict=True)})
    if len(fresh) == len(tasks) and unique is None:
        return list(map(Submitted._make, zip([task.id for task in tasks], states, repeat(False), repeat(CREATED))))
    state_of = iter(states)
    told = [
        answer if answer is not None else Submitted(task.id, next(state_of), False)
        for task, answer in zip(tasks, answers, strict=True)
    ]
    if unique is not None:
        unique.finish(told)
    return told


def _entered(tx: Transaction, written: "Written", pending: bool) -> list[TaskState]:
    """The states of tasks that were written, once those that have gates have passed them or wait there."""
    states, first, gated = written
    if gated:
        for n, state in enter(tx, gated, pending):
            states[n - first] = TaskState(state)
    return states


def _known_ids(tx: Transaction, tasks: Sequence[Task]) -> list[Answer]:
    found = tx.document("task_known", batch=batch([(task.terms.organization, task.id) for task in tasks]))
    return [Submitted(tasks[place].id, TaskState(state), True) for place, state in found]


PLAIN_WIDTH, WIDTH = 3, 9
"""How many values the rows of `task_insert_plain` and `task_insert` have."""


class Written(NamedTuple):
    """The states that tasks begin in, and the number of the first of them; the others follow in order.

    Those that are `gated`, by number, are still to pass their gates.
    """

    states: list[TaskState]
    first: int
    gated: list[int]


def write_tasks(
    tx: Transaction,
    tasks: Sequence[Task],
    lanes: Lanes,
    *,
    pending: bool = False,
    job: int | None = None,
) -> Written:
    """Write specifications and live rows. Specifications first: a task that exists already shows there."""
    if not tasks:
        return Written([], 0, [])
    first = int(tx.value("task_last")) + 1
    shapes, shape_of_terms = _write_specifications(tx, tasks, lanes, first, job)
    tx.announce(Topic.READY)
    if pending or any(shape.others for shape in shapes):
        tx.announce(Topic.DUE)
        lane_of_task = [shape_of_terms[id(task.terms)].number for task in tasks]
        return _write_live(tx, tasks, lane_of_task, first, pending)
    moves: Counter[tuple[int, str]] = Counter()
    for shape in shapes:
        moves[shape.number, QUEUED] += len(shape.plain) // PLAIN_WIDTH
    tx.run("live_insert_plain", first=first, before=_count_in(tx, moves, len(tasks)))
    return Written([TaskState.QUEUED] * len(tasks), first, [])


def _write_specifications(
    tx: Transaction, tasks: Sequence[Task], lanes: Lanes, first: int, job: int | None
) -> tuple[Collection["_Shape"], dict[int, "_Shape"]]:
    """Returns the shapes that there are, and which belongs to terms: by the id of the object."""
    shapes: dict[Terms, _Shape] = {}
    shape_of_terms: dict[int, _Shape] = {}
    for n, (id_, payload, terms, rare) in enumerate(tasks, first):
        shape = shape_of_terms.get(id(terms))
        if shape is None:
            shape = shape_of_terms[id(terms)] = shapes.setdefault(terms, _Shape(terms))
        if not shape.is_json:
            payload = hex_of_base64(payload)
        if rare is NOTHING_RARE:
            shape.plain += (n, id_, payload)
        else:
            shape.others += (n, id_, payload, *_rare_columns(rare))
    numbers = lanes.numbers(tx, {shape.lane for shape in shapes.values()})
    for shape in shapes.values():
        shape.number = numbers[shape.lane]
        constants = (tx.now_us, shape.number, job, *shape.constants)
        if shape.plain:
            tx.insert("task_insert_plain", constants, shape.plain, PLAIN_WIDTH)
        if shape.others:
            tx.insert("task_insert", constants, shape.others, WIDTH)
    return shapes.values(), shape_of_terms


class _Shape:
    """What tasks of one call have in common is bound once, and the rows of what they have of their own."""

    __slots__ = ("constants", "is_json", "lane", "number", "others", "plain")

    def __init__(self, terms: Terms) -> None:
        self.lane = lane_of(terms)
        self.number = 0
        self.is_json = terms.encoding == "json"
        self.constants = specification_of(terms)
        self.plain: list[Any] = []
        """Of tasks that have nothing of their own but id and payload, and are due at once."""
        self.others: list[Any] = []


def _rare_columns(rare: Rare) -> tuple[Any, ...]:
    return rare.waits, rare.name, rare.run_at_us, rare.idempotency_key, rare.request_hash, rare.options


def _write_live(
    tx: Transaction, tasks: Sequence[Task], lane_of_task: Sequence[int], first: int, pending: bool
) -> Written:
    """Live rows of tasks some of which wait for something."""
    due = [_due_us(task.rare, tx.now_us) for task in tasks]
    gated = [has_gates(task.rare.options) for task in tasks]
    queued = [
        not (pending or gates or task.rare.waits) and at <= tx.now_us
        for task, at, gates in zip(tasks, due, gated, strict=True)
    ]
    states = [TaskState.QUEUED if joins else TaskState.PENDING for joins in queued]
    moves = Counter((lane, str(state)) for lane, state in zip(lane_of_task, states, strict=True))
    place = _count_in(tx, moves, sum(queued))
    rows: list[Any] = []
    for n, (state, due_us) in enumerate(zip(states, due, strict=True), first):
        joins = state == TaskState.QUEUED
        place += joins
        rows += (n, str(state), place if joins else None, due_us)
    tx.insert("live_insert", (tx.now_us,), rows, 4)
    return Written(states, first, [n for n, gates in enumerate(gated, first) if gates])


def _count_in(tx: Transaction, moves: Mapping[tuple[int, str], int], joining: int) -> int:
    """Count new tasks, and take places in line for those that join; returns the place before the first of these."""
    count_moves(tx, [(lane, None, state, count) for (lane, state), count in moves.items()])
    return places(tx, joining) if joining else 0


def _due_us(rare: Rare, now: int) -> int:
    if rare.delay_us is not None:
        return now + rare.delay_us
    return now if rare.run_at_us is None else max(now, rare.run_at_us)
