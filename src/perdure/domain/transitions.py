"""The lifecycle as data. `docs/state_machine.md` is drawn from this table and a test compares the two."""

from enum import StrEnum
from typing import NamedTuple

from perdure.domain.states import AttemptState as A
from perdure.domain.states import TaskState as T
from perdure.errors import IllegalTransition


class Event(StrEnum):
    """What can happen to a task."""

    SUBMIT = "submit"
    PROMOTE = "promote"
    POSTPONE = "postpone"
    CANCEL = "cancel"
    EXPIRE = "expire"
    FAIL = "fail"
    CLAIM = "claim"
    START = "start"
    SUCCEED = "succeed"
    SUCCEED_PARTLY = "succeed_partly"
    RETRY = "retry"
    GIVE_UP = "give_up"
    SNOOZE = "snooze"
    HAND_BACK = "hand_back"
    LOSE = "lose"
    REVOKE = "revoke"
    ACKNOWLEDGE = "acknowledge"
    CANCEL_DEADLINE = "cancel_deadline"
    REDRIVE = "redrive"
    REVIVE = "revive"


class Transition(NamedTuple):
    """One row of the lifecycle: from any of `sources`, `event` leads to one of `targets`."""

    sources: tuple[T | None, ...]
    event: Event
    targets: tuple[T, ...]
    attempt: tuple[A, ...]
    when: str


TABLE: tuple[Transition, ...] = (
    Transition(
        (None,),
        Event.SUBMIT,
        (T.PENDING, T.QUEUED),
        (),
        "queued only if nothing is open before it and it is due",
    ),
    Transition((T.PENDING, T.RETRYING), Event.PROMOTE, (T.QUEUED,), (), "no dependency open and due"),
    Transition((T.QUEUED,), Event.POSTPONE, (T.PENDING,), (), "a new time to run at"),
    Transition((T.PENDING, T.QUEUED, T.RETRYING), Event.CANCEL, (T.CANCELLED,), (), "nobody holds it"),
    Transition((T.PENDING, T.QUEUED, T.RETRYING), Event.EXPIRE, (T.EXPIRED,), (), "its TTL passed"),
    Transition((T.LEASED,), Event.EXPIRE, (T.EXPIRED,), (A.RELEASED,), "its TTL passed before the handler began"),
    Transition(
        (T.PENDING, T.QUEUED, T.RETRYING),
        Event.FAIL,
        (T.FAILED, T.DEAD_LETTERED),
        (),
        "its deadline passed, or nobody can run it",
    ),
    Transition((T.QUEUED,), Event.CLAIM, (T.LEASED,), (A.LEASED,), "a new fence; never past a deadline or TTL"),
    Transition((T.LEASED,), Event.START, (T.RUNNING,), (A.RUNNING,), "the worker says that the handler began"),
    Transition((T.LEASED, T.RUNNING), Event.SUCCEED, (T.SUCCEEDED,), (A.SUCCEEDED,), "the handler returned"),
    Transition(
        (T.LEASED, T.RUNNING),
        Event.SUCCEED_PARTLY,
        (T.PARTIALLY_SUCCEEDED,),
        (A.SUCCEEDED,),
        "some items failed",
    ),
    Transition((T.LEASED, T.RUNNING), Event.RETRY, (T.RETRYING,), (A.FAILED,), "budget left; due after its backoff"),
    Transition((T.LEASED, T.RUNNING), Event.GIVE_UP, (T.CANCELLED,), (A.CANCELLED,), "the handler returned Cancel"),
    Transition((T.LEASED, T.RUNNING), Event.SNOOZE, (T.PENDING,), (A.SNOOZED,), "no budget spent; counted"),
    Transition((T.LEASED, T.RUNNING), Event.HAND_BACK, (T.QUEUED,), (A.RELEASED,), "no budget spent; counted"),
    Transition(
        (T.LEASED, T.RUNNING),
        Event.FAIL,
        (T.FAILED, T.DEAD_LETTERED),
        (A.FAILED,),
        "permanent, exhausted, timeout or deadline",
    ),
    Transition(
        (T.LEASED, T.RUNNING),
        Event.LOSE,
        (T.QUEUED, T.RETRYING, T.FAILED, T.DEAD_LETTERED, T.SUCCEEDED, T.PARTIALLY_SUCCEEDED),
        (A.LOST, A.SUCCEEDED),
        "its lease ran out; a receipt makes it succeed",
    ),
    Transition(
        (T.LEASED, T.RUNNING),
        Event.REVOKE,
        (T.QUEUED,),
        (A.CANCELLED,),
        "its worker was put out; it runs elsewhere, at no cost",
    ),
    Transition((T.LEASED, T.RUNNING), Event.CANCEL, (T.CANCELLING,), (), "its holder is told"),
    Transition(
        (T.CANCELLING,),
        Event.ACKNOWLEDGE,
        (T.CANCELLED, T.SUCCEEDED, T.PARTIALLY_SUCCEEDED),
        (A.CANCELLED, A.SUCCEEDED),
        "any settle of its holder; a receipt committed before the cancel wins",
    ),
    Transition(
        (T.CANCELLING,),
        Event.LOSE,
        (T.CANCELLED, T.SUCCEEDED, T.PARTIALLY_SUCCEEDED),
        (A.CANCELLED, A.SUCCEEDED),
        "its lease ran out",
    ),
    Transition(
        (T.CANCELLING,),
        Event.CANCEL_DEADLINE,
        (T.CANCELLED, T.SUCCEEDED, T.PARTIALLY_SUCCEEDED),
        (A.CANCELLED, A.SUCCEEDED),
        "its holder did not answer in time",
    ),
    Transition(
        (T.FAILED, T.DEAD_LETTERED),
        Event.REDRIVE,
        (T.QUEUED, T.PENDING),
        (),
        "same id, next generation, fresh budgets",
    ),
    Transition(
        (T.CANCELLED, T.EXPIRED),
        Event.REVIVE,
        (T.PENDING, T.QUEUED),
        (),
        "it was cancelled for an ancestor that was redriven, or its job was retried",
    ),
)

_TARGETS: dict[tuple[T | None, Event], frozenset[T]] = {
    (source, row.event): frozenset(row.targets) for row in TABLE for source in row.sources
}


def targets(source: T | None, event: Event) -> frozenset[T]:
    """The states that `event` may lead to from `source`; empty when the event is illegal there."""
    return _TARGETS.get((source, event), frozenset())


def check(source: T | None, event: Event, target: T) -> None:
    """Raise `IllegalTransition` unless the table has this move."""
    if target not in targets(source, event):
        raise IllegalTransition(source=str(source) if source else None, event=str(event), target=str(target))
