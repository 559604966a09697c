"""Who may be stored: repeats by idempotency key, and the depths of queues and organizations."""

from collections.abc import Callable, Mapping, Sequence

from perdure.domain.states import TaskState
from perdure.domain.task import Task
from perdure.errors import IdempotencyConflict, Invalid, Overloaded, PerdureError, UniqueConflict
from perdure.store.ledger import Submitted
from perdure.store.relational.sharing import terms_of
from perdure.store.relational.transaction import Transaction, batch

RETRY_AFTER_SECONDS = 5
"""What a refused submitter is told to wait."""

Answer = Submitted | PerdureError


def refuse_overdue(tasks: Sequence[Task], answers: list[Answer | None]) -> None:
    """Refuse tasks whose TTL has passed on arrival."""
    overdue = {key for key, terms in terms_of(tasks).items() if terms.ttl_us is not None and terms.ttl_us <= 0}
    if not overdue:
        return
    for place, task in enumerate(tasks):
        if id(task.terms) in overdue and answers[place] is None:
            answers[place] = Invalid("the TTL has passed already: give more than 0 seconds", field="ttl")


def answer_known_keys(tx: Transaction, tasks: Sequence[Task], answers: list[Answer | None]) -> None:
    """Answer tasks whose idempotency key was used before, in this call too."""
    keyed = [i for i, task in enumerate(tasks) if task.rare.idempotency_key is not None and answers[i] is None]
    if not keyed:
        return
    rows = [key_of(tasks[i]) for i in keyed]
    found = tx.document("idempotency_find", what="task", batch=batch(rows))
    known = {keyed[place]: (id, request_hash) for place, id, request_hash in found}
    same = {i: id for i, (id, request_hash) in known.items() if request_hash == tasks[i].rare.request_hash}
    states = tx.document("task_states", batch=batch([(tasks[i].terms.organization, id) for i, id in same.items()]))
    replayed = dict(zip(same, states, strict=True))
    for i, (id, _) in known.items():
        if i in replayed:
            state = replayed[i]
            answers[i] = Submitted(id, None if state is None else TaskState(state), True)
        else:
            answers[i] = key_conflict(tasks[i].rare.idempotency_key, "task_id", id)
    seen: dict[tuple[str, str, str | None], Task] = {}
    for i in keyed:
        if answers[i] is None:
            task = tasks[i]
            first = seen.setdefault(key_of(task), task)
            if first is not task:
                answers[i] = _twin(first, task)


def key_of(task: Task) -> tuple[str, str, str | None]:
    """The idempotency key of a task, with whose it is."""
    return task.terms.organization, task.terms.principal, task.rare.idempotency_key


def _twin(first: Task, second: Task) -> Answer:
    if first.rare.request_hash != second.rare.request_hash:
        return key_conflict(second.rare.idempotency_key, "task_id", first.id)
    return Submitted(first.id, TaskState.QUEUED, True)


def answer_twins(tasks: Sequence[Task], answers: list[Answer | None], states: Mapping[str, TaskState]) -> None:
    """A replay of a task of the same call shares its fate: refused together, or in the same state."""
    refused = {
        key_of(task): answer
        for task, answer in zip(tasks, answers, strict=True)
        if isinstance(answer, Overloaded | UniqueConflict)
    }
    for i, (task, answer) in enumerate(zip(tasks, answers, strict=True)):
        if isinstance(answer, Submitted) and task.rare.idempotency_key is not None:
            shown = answer._replace(state=states.get(answer.id, answer.state))
            answers[i] = refused.get(key_of(task), shown)


def bindings(
    tasks: Sequence[Task], answers: Sequence[Answer | None]
) -> list[tuple[str, str, str | None, str, str | None]]:
    """What the idempotency keys of a call stand for, where they are new: the key, a task, and the request's hash.

    Answers are as before the write: none for what is going to be stored.
    """
    rows = []
    for task, answer in zip(tasks, answers, strict=True):
        if answer is None:
            rows.append((*key_of(task), task.id, task.rare.request_hash))
        elif isinstance(answer, Submitted) and not answer.replayed:
            rows.append((*key_of(task), answer.id, task.rare.request_hash))
    return rows


def key_conflict(key: str | None, field: str, id: str) -> IdempotencyConflict:
    """The key was used for another request."""
    return IdempotencyConflict(
        f"idempotency key {key!r} was used for another request, which made {id}: use another key, or send that request",
        key=key,
        **{field: id},
    )


def refuse_overload(tx: Transaction, tasks: Sequence[Task], answers: list[Answer | None]) -> None:
    """Refuse what is beyond the depth of its queue or organization."""
    check = admission(tx, {terms.organization for terms in terms_of(tasks).values()})
    if check is None:
        return
    for i, task in enumerate(tasks):
        if answers[i] is None:
            answers[i] = check(task.terms.organization, {task.terms.queue: 1})


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
