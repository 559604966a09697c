"""Numbers from outside, checked and turned into the integers that are used inside."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, TypeVar

from perdure.domain import limits
from perdure.domain.states import ENDED, TaskState
from perdure.errors import Invalid
from perdure.mistakes import EXAMPLE_INSTANT

T = TypeVar("T", bound=str)

_EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def seconds_us(value: object, field: str, low_us: int, high_us: int) -> int | None:
    """Seconds as microseconds; `None` stays `None`. Raises `Invalid` outside `low_us` to `high_us`."""
    if value is None:
        return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Compared first: what is no number, or no finite one once it is multiplied, cannot be rounded.
        us = value * limits.SECOND_US
        if low_us - 1 < us < high_us + 1 and low_us <= round(us) <= high_us:
            return round(us)
    low, high = low_us / limits.SECOND_US, high_us / limits.SECOND_US
    raise Invalid(f"{field} must be between {low:.12g} and {high:.12g} seconds, not {shown(value)}", field=field)


def check_timeout(value: float | None, field: str = "timeout") -> float | None:
    """Seconds to wait at most; `None` is for ever. Raises `Invalid` for what is negative or not a finite number."""
    if value is not None and not is_finite(value, 0):
        raise Invalid(
            f"{field} must be a number of seconds, 0 or more, not {shown(value)}; leave it out to wait for ever",
            field=field,
        )
    return value


def is_finite(value: object, low: float) -> bool:
    """Whether a value is a number from `low` on, neither nan nor infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and low <= value < float("inf")


def seconds_by_state_us(value: object, field: str) -> dict[TaskState, int]:
    """How long what has ended is kept, by end state: seconds as microseconds. Raises `Invalid`."""
    if not isinstance(value, Mapping):
        raise Invalid(f"{field} must map end states to seconds, not {shown(value)}", field=field)
    kept: dict[TaskState, int] = {}
    for state, seconds in value.items():
        if state not in ENDED:
            ends = ", ".join(sorted(ENDED))
            raise Invalid(f"{field} names {shown(state)}, which is no end state; they are {ends}", field=field)
        us = seconds_us(seconds, f"{field}.{state}", 0, limits.RETENTION_MAX_US)
        if us is not None:
            kept[TaskState(state)] = us
    return kept


def instant_us(value: object, field: str, now_us: int) -> int | None:
    """A moment as microseconds since 1970 UTC; `None` stays `None`.

    Raises `Invalid` without a time zone, before 1970, and further ahead of `now_us` than any task may wait.
    """
    if value is None:
        return None
    if not isinstance(value, datetime) or value.tzinfo is None or value.utcoffset() is None:
        raise Invalid(
            f"{field} must be an instant with a time zone like {EXAMPLE_INSTANT}, not {shown(value)}", field=field
        )
    delta = value - _EPOCH
    us = (delta.days * 86_400 + delta.seconds) * limits.SECOND_US + delta.microseconds
    if us < 0 or us > now_us + limits.DELAY_MAX_US:
        years = limits.DELAY_MAX_US // (365 * 86_400 * limits.SECOND_US)
        raise Invalid(f"{field} must be after 1970 and within {years} years, not {value.isoformat()}", field=field)
    return us


def check_count(value: object, field: str, low: int, high: int) -> int:
    """A whole number between `low` and `high`. Raises `Invalid`."""
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return int(value)
    raise Invalid(f"{field} must be a whole number between {low} and {high}, not {shown(value)}", field=field)


def check_priority(value: object) -> int:
    """A priority: 0 to 9, 9 the most urgent. Raises `Invalid`."""
    return check_count(value, "priority", limits.PRIORITY_MIN, limits.PRIORITY_MAX)


def check_choice(value: Any, field: str, choices: Sequence[T]) -> T:
    """One of `choices`. Raises `Invalid`."""
    for each in choices:
        if each == value:
            return each
    raise Invalid(f"{field} must be one of {', '.join(choices)}, not {shown(value)}", field=field)


def shown(value: object) -> str:
    """A value in the words of a refusal: as it is written in Python, cut where it is long."""
    text = value.isoformat() if isinstance(value, datetime) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
