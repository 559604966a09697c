"""Submitting tasks that have no job."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from psycopg import errors

from perdure.domain import limits
from perdure.domain.states import TaskState
from perdure.domain.task import NOTHING_RARE, Alike, Rare, Task, Terms
from perdure.store.ledger import Submitted
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.admission import (
    Answer,
    answer_known_keys,
    answer_twins,
    bindings,
    refuse_overdue,
    refuse_overload,
)
from perdure.store.relational.bodies import hex_of_base64
from perdure.store.relational.ending import enter
from perdure.store.relational.gates import has_gates
from perdure.store.relational.lanes import Lanes, lane_of
from perdure.store.relational.operation import Lone
from perdure.store.relational.sharing import SPECIFICATION, specification_of, terms_of
from perdure.store.relational.transaction import batch
from perdure.store.relational.unique import deciding
from perdure.store.wakeups import Topic

LONE_MAX_BYTES = 8_192
"""A payload that is no longer is sent by whoever cannot wait until a connection has room."""
EARLY_US = 10_000
LATE_US = 1_000_000
"""A statement that commits by itself writes nothing where the server's clock is by more before or after it."""


def submit(tx: Transaction, tasks: Sequence[Task], lanes: Lanes, pending: bool = False) -> list[Answer]:
    """Store tasks. `pending`: even what is due only joins its lane later, by a duty (inside a caller's transaction).

    Depths are looked at where the write finds that there are any; keys are taken before the tasks are written, so that
    of two transactions with the same key one waits for the other and then answers with its task.
    """
    plain = None if pending else _submit_plain(tx, tasks, lanes)
    if plain is not None:
        return plain
    answers: list[Answer | None] = [None] * len(tasks)
    refuse_overdue(tasks, answers)
    keyed = any(task.rare.idempotency_key is not None for task in tasks)
    if keyed:
        answer_known_keys(tx, tasks, answers)
    unique = deciding(tx, tasks, answers)
    if keyed:
        if unique is None:
            refuse_overload(tx, tasks, answers)
        take_keys(tx, "task", bindings(tasks, answers))
    admitted = keyed or unique is not None
    states = _write_unanswered(tx, tasks, answers, lanes, pending=pending, admitted=admitted)
    if keyed:
        answer_twins(tasks, answers, states)
    told = [answer for answer in answers if answer is not None]
    if unique is not None:
        unique.finish(told)
    return told


def _submit_plain(tx: Transaction, tasks: Sequence[Task], lanes: Lanes) -> list[Answer] | None:
    """Store tasks that are due now, have nothing that few have, and share their terms, all or none of them.

    `None`: they are not such tasks, or there is more to look at, a depth or a task that exists already; then nothing is
    written.
    """
    terms = _shared_by_plain(tasks)
    if terms is None:
        return None
    columns = _shared_columns(terms, lanes.number(tx, lane_of(terms)))
    ids, payloads = _own_of_plain(tasks)
    if len(ids) == 1:
        name = "submit_one"
        columns |= {"id": ids[0], "payload": payloads[0]}
    else:
        name = "submit_alike"
        columns |= {"ids": ids, "payloads": payloads, "first": min(ids), "last": max(ids)}
        if len({*ids}) < len(ids):
            return None
    try:
        written = tx.value(name, **columns)
    except errors.UniqueViolation as error:
        raise collided("another transaction has written the same task meanwhile") from error
    if not written:
        return None
    tx.announce(Topic.READY)
    return [Submitted(id_, TaskState.QUEUED, False) for id_ in ids]


def submit_lone(tasks: Sequence[Task], now_us: int, lanes: Lanes) -> Lone | None:
    """How one plain task is stored by itself, which begins and commits with its statement.

    `None`: it is not plain, or its lane has to be asked for.
    """
    terms = _shared_by_plain(tasks)
    lane = None if terms is None else lanes.known(now_us, lane_of(terms))
    if terms is None or lane is None:
        return None
    (id_,), (payload,) = _own_of_plain(tasks)
    if len(payload) > LONE_MAX_BYTES:
        return None
    columns = _shared_columns(terms, lane)
    columns |= {
        "id": id_,
        "payload": payload,
        "now": now_us,
        "earliest": now_us - EARLY_US,
        "latest": now_us + LATE_US,
    }
    return Lone("submit_lone", columns, Submitted(id_, TaskState.QUEUED, False), Topic.READY)


def _shared_columns(terms: Terms, lane: int) -> dict[str, Any]:
    columns: dict[str, Any] = dict(zip(SPECIFICATION, specification_of(terms), strict=True))
    columns["lane"] = lane
    return columns


def _own_of_plain(tasks: Sequence[Task]) -> tuple[list[str], list[bytes]]:
    """The columns of ids and payloads; an object for each task is only asked for where there is one already."""
    if isinstance(tasks, Alike):
        return [*tasks.ids], [*tasks.payloads]
    return [task.id for task in tasks], [task.payload.encode() for task in tasks]


def _shared_by_plain(tasks: Sequence[Task]) -> Terms | None:
    """The terms of plain tasks, if there are any, all are plain and have the same."""
    if not tasks:
        return None
    if isinstance(tasks, Alike):
        terms = tasks.terms
    else:
        terms = tasks[0].terms
        if any(other is not terms and other != terms for other in terms_of(tasks).values()):
            return None
        if not all(task.rare is NOTHING_RARE or task.rare == NOTHING_RARE for task in tasks):
            return None
    if terms.encoding != "json" or (terms.ttl_us is not None and terms.ttl_us <= 0):
        return None
    return terms


Binding = tuple[str, str, str | None, str, str | None]
"""Organization, principal, idempotency key; the id that it stands for, and the request's hash."""


def take_keys(tx: Transaction, what: str, asked: Sequence[Binding]) -> None:
    """Bind the idempotency keys of what is about to be written."""
    rows = [each for each in asked if each[2] is not None]
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
        once = {(tasks[place].terms.organization, tasks[place].id): place for place in reversed(places)}
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
        if written.numbers:
            for place, state in _enter(tx, tasks, places, written, pending=pending):
                states[tasks[place].id] = state
                answers[place] = Submitted(tasks[place].id, state, False)
        if written.known:
            _answer_known(tx, tasks, answers, [places[known] for known in written.known])
    return states


def _enter(
    tx: Transaction, tasks: Sequence[Task], places: Sequence[int], written: "Written", *, pending: bool
) -> list[tuple[int, TaskState]]:
    """Let those of the tasks pass their gates that have some. Returns their places and states."""
    known = {*written.known}
    fresh = [place for index, place in enumerate(places) if index not in known]
    place_of = dict(zip(written.numbers or (), fresh, strict=True))
    gated = [n for n, place in place_of.items() if has_gates(tasks[place].rare.options)]
    return [(place_of[n], TaskState(state)) for n, state in enter(tx, gated, pending)]


def _answer_known(tx: Transaction, tasks: Sequence[Task], answers: list[Answer | None], places: list[int]) -> None:
    """The same task again is a repeated call whose answer was lost."""
    asked = batch([(tasks[place].terms.organization, tasks[place].id) for place in places])
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
    numbered = job is not None or any(has_gates(task.rare.options) for task in tasks)
    try:
        ((free, known, numbers),) = tx.run("submit", batch=batch(groups), admitted=admitted, numbered=numbered)
    except errors.UniqueViolation as error:
        raise collided("another transaction has written the same task meanwhile") from error
    if not free:
        return None
    tx.announce(Topic.READY if TaskState.PENDING not in states else Topic.READY | Topic.DUE)
    return Written(states, sorted(known or ()), numbers)


def _grouped(
    tx: Transaction, tasks: Sequence[Task], lanes: Lanes, job: int | None, *, pending: bool
) -> tuple[list[tuple[Any, list[Any]]], list[TaskState]]:
    """What tasks share is sent once for them all: groups of that and of what each has of its own; and their states."""
    numbers = lanes.numbers(tx, {lane_of(terms) for terms in terms_of(tasks).values()})
    groups: dict[Terms, tuple[Any, list[Any]]] = {}
    own_of_terms: dict[int, list[Any]] = {}
    states = []
    now = tx.now_us
    for place, (id_, payload, terms, rare) in enumerate(tasks):
        own = own_of_terms.get(id(terms))
        if own is None:
            group = groups.setdefault(terms, (_template(terms, numbers[lane_of(terms)], job), []))
            own = own_of_terms[id(terms)] = group[1]
        if terms.encoding != "json":
            payload = hex_of_base64(payload)
        due_us = _due_us(rare, now)
        queued = not pending and rare.waits == 0 and due_us <= now and not has_gates(rare.options)
        states.append(TaskState.QUEUED if queued else TaskState.PENDING)
        if rare is NOTHING_RARE and queued:
            own.append((place, id_, payload))
        else:
            state = None if queued else "pending"
            own.append((place, id_, payload, state, due_us, rare.waits, *_rare_columns(rare)))
    return list(groups.values()), states


def _due_us(rare: Rare, now: int) -> int:
    if rare.delay_us is not None:
        return now + rare.delay_us
    return now if rare.run_at_us is None else max(now, rare.run_at_us)


def _template(terms: Terms, lane: int, job: int | None) -> tuple[Any, ...]:
    """What tasks of one call have in common, in the order in which `submit` reads it."""
    organization, *written = specification_of(terms)
    return (organization, lane, job, *written)


def _rare_columns(rare: Rare) -> tuple[Any, ...]:
    """What few tasks have, in the order in which `submit` reads it; nothing where there is nothing."""
    columns = (rare.name, rare.run_at_us, rare.idempotency_key, rare.request_hash, rare.options)
    return columns if columns != _NO_COLUMNS else ()


_NO_COLUMNS = (None,) * 5
