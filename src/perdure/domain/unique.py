"""Unique tasks: of those that have the same key, one is there at a time, or in a while. Standard library only.

A task that is submitted with a key meets the task that holds it. Where the two conflict, the one that comes says what
becomes of them; where they do not, the key is its own from then on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from perdure.domain.limits import (
    SECOND_US,
    UNIQUE_BY_MAX,
    UNIQUE_WAIT_MAX_US,
    UNIQUE_WAIT_MIN_US,
    UNIQUE_WITHIN_MAX_US,
    UNIQUE_WITHIN_MIN_US,
)
from perdure.domain.payload_fields import payload_fields
from perdure.domain.states import UNFINISHED, WAITING, TaskState
from perdure.errors import Invalid


class OnConflict(StrEnum):
    """What becomes of a task whose key another one holds."""

    REJECT = "reject"
    """It is refused with `UniqueConflict`."""
    RETURN_EXISTING = "return_existing"
    """The holder is the answer; nothing is stored."""
    REPLACE = "replace"
    """A holder that waits is cancelled, and this one holds the key. Refused where the holder has been claimed."""
    DEBOUNCE = "debounce"
    """A holder that waits takes this one's payload, and goes on waiting for `wait`. Once claimed, it holds nothing."""
    THROTTLE = "throttle"
    """As `return_existing`, for a while after the holder was submitted, whatever became of it."""


Choice = Literal["reject", "return_existing", "replace", "debounce", "throttle"]


class SubmitOutcome(StrEnum):
    """What a submit has done."""

    CREATED = "created"
    EXISTING = "existing"
    """A task that was there is the answer."""
    REPLACED = "replaced"
    """A new task is there; the one that held its key is cancelled."""
    DEBOUNCED = "debounced"
    """The task that held the key has the payload now."""
    REQUEUED = "requeued"
    """A task that had failed for good runs again, under its id."""


@dataclass(frozen=True, slots=True)
class Unique:
    """That of several tasks of a kind one is enough, and which those are.

    - `by`: fields of the payload. Tasks with the same values of these have the same key; without, all of the kind.
    - `on_conflict`: what becomes of a task whose key is held: it is refused (`reject`), answered with the holder
      (`return_existing`; `throttle`: for a while after the holder was submitted, whatever became of it), put in its
      place (`replace`), or the holder, while it waits, takes its payload and waits on (`debounce`).
    - `states`: in which the holder keeps its key besides while it waits; if nothing is said, until it has ended. Ends
      may be named too: then it keeps the key until it is removed, or for `within`.
    - `within`: seconds from its submit after which it loses the key in any case. `throttle` needs it.
    - `wait`: for `debounce`, the seconds without another submit after which the task runs; `max_wait`: the seconds from
      the first submit after which it runs in any case.

    Raises `Invalid` with the field's name when a value is out of range.
    """

    by: str | tuple[str, ...] = ()
    on_conflict: Choice = "reject"
    states: tuple[TaskState, ...] = ()
    within: float | None = None
    wait: float | None = None
    max_wait: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", payload_fields(self.by, UNIQUE_BY_MAX))
        choice = _on_conflict(self.on_conflict)
        object.__setattr__(self, "on_conflict", choice.value)
        object.__setattr__(self, "states", _states(self.states))
        _check_seconds(self.within, "within", UNIQUE_WITHIN_MIN_US, UNIQUE_WITHIN_MAX_US)
        _check_seconds(self.wait, "wait", UNIQUE_WAIT_MIN_US, UNIQUE_WAIT_MAX_US)
        _check_seconds(self.max_wait, "max_wait", UNIQUE_WAIT_MIN_US, UNIQUE_WAIT_MAX_US)
        debounces, throttles = choice is OnConflict.DEBOUNCE, choice is OnConflict.THROTTLE
        if debounces != (self.wait is not None):
            raise Invalid("debounce needs wait, the seconds of quiet, and nothing else does", field="wait")
        if self.max_wait is not None and not debounces:
            raise Invalid("max_wait bounds a debounce, and nothing else", field="max_wait")
        if throttles and self.within is None:
            raise Invalid("throttle needs within, the seconds for which one task is enough", field="within")
        if debounces and self.within is not None:
            raise Invalid("a debounce has no within: max_wait bounds it", field="within")
        if self.states and (debounces or throttles):
            raise Invalid(f"{self.on_conflict} says itself in which states a task holds its key", field="states")

    def key(self, key: str, by: Sequence[str] = ()) -> "UniqueKey":
        """What a task with this key has; `by`: the fields whose values made the key."""
        return UniqueKey(
            key,
            self._holding(),
            OnConflict(self.on_conflict),
            within_us=_us(self.within),
            wait_us=_us(self.wait),
            max_wait_us=_us(self.max_wait),
            by=tuple(by),
        )

    def _holding(self) -> tuple[TaskState, ...]:
        if self.on_conflict == "throttle":
            return tuple(sorted(TaskState))
        if self.on_conflict == "debounce":
            return tuple(sorted(WAITING))
        return tuple(sorted({*self.states, *WAITING} if self.states else UNFINISHED))


@dataclass(frozen=True, slots=True)
class UniqueKey:
    """The key of one task, and when another task may not have it beside. Two meet where organization and key are one.

    Times are microseconds; `None` means "not said".
    """

    key: str
    states: tuple[TaskState, ...]
    on_conflict: OnConflict
    within_us: int | None = None
    wait_us: int | None = None
    max_wait_us: int | None = None
    by: tuple[str, ...] = ()
    """The fields of the payload whose values made the key: another payload makes another. Empty where it was given."""

    def meet(self, state: TaskState | None, age_us: int, alone: bool) -> SubmitOutcome | None:
        """What a task with this key does to the one that holds it; `None`: it is refused.

        `state`: the holder's, none where there is no holder. `age_us`: how long it has held the key. `alone`: it has
        no job, whose other tasks count on it.
        """
        if state is None or state not in self.states or (self.within_us is not None and age_us >= self.within_us):
            return SubmitOutcome.CREATED
        if self.on_conflict in (OnConflict.RETURN_EXISTING, OnConflict.THROTTLE):
            return SubmitOutcome.EXISTING
        if self.on_conflict is OnConflict.REJECT or state not in WAITING or not alone:
            return None
        return SubmitOutcome.REPLACED if self.on_conflict is OnConflict.REPLACE else SubmitOutcome.DEBOUNCED

    def until_us(self, taken_us: int) -> int | None:
        """When its holder loses it in any case, if it took it then."""
        return None if self.within_us is None else taken_us + self.within_us

    def due_us(self, now_us: int, taken_us: int) -> int:
        """When a task is due that is debounced now and took its key then."""
        due_us = now_us + (self.wait_us or 0)
        return due_us if self.max_wait_us is None else max(now_us, min(due_us, taken_us + self.max_wait_us))


def _us(seconds: float | None) -> int | None:
    return None if seconds is None else round(seconds * SECOND_US)


def _on_conflict(said: object) -> OnConflict:
    try:
        return OnConflict(str(said))
    except ValueError:
        raise Invalid(f"on_conflict must be one of {', '.join(OnConflict)}", field="on_conflict") from None


def _states(said: object) -> tuple[TaskState, ...]:
    if not isinstance(said, tuple | list | set | frozenset):
        raise Invalid("states must be a list of states", field="states")
    try:
        states = {TaskState(each) for each in said}
    except ValueError:
        raise Invalid(f"states must be some of {', '.join(TaskState)}", field="states") from None
    return tuple(sorted(states))


def _check_seconds(said: object, field: str, low_us: int, high_us: int) -> None:
    low, high = low_us / SECOND_US, high_us / SECOND_US
    if said is None:
        return
    if isinstance(said, bool) or not isinstance(said, int | float) or not low <= said <= high:
        raise Invalid(f"{field} must be between {low:.12g} and {high:.12g} seconds", field=field)
