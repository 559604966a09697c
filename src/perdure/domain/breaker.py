"""Circuit breakers: when a kind whose attempts fail is left alone, and when it is tried again. Standard library only.

A breaker counts how attempts end. While it is closed, tasks of the kind start as ever. Where too many fail, it opens:
nothing of the kind starts for a while. After that it is half open: a few attempts may start as probes, and what becomes
of these decides. Each change begins a new count, of attempts that began since: what was under way before tells nothing
about how things are now.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from perdure.domain.limits import (
    BREAKER_BUCKETS,
    BREAKER_OPEN_MAX_US,
    BREAKER_OPEN_MIN_US,
    BREAKER_PROBES_MAX,
    BREAKER_WINDOW_MAX_US,
    BREAKER_WINDOW_MIN_US,
    LIMIT_MAX,
    SECOND_US,
)
from perdure.domain.settlement import Charge, Settlement
from perdure.domain.states import GOOD_ENDS, AttemptState, Reason, TaskState
from perdure.errors import Invalid

SHARE_DEFAULT = 0.5


class BreakerState(StrEnum):
    """Whether tasks of a kind may start."""

    CLOSED = "closed"
    """As ever."""
    OPEN = "open"
    """None, until its time is over."""
    HALF_OPEN = "half_open"
    """A few, as probes."""


class BreakerEvent(StrEnum):
    """What changes a breaker."""

    TOO_MANY_FAILED = "too_many_failed"
    TIME_PASSED = "time_passed"
    PROBE_FAILED = "probe_failed"
    PROBES_PASSED = "probes_passed"
    TRIP = "trip"
    """Somebody opens it by hand."""
    RESET = "reset"
    """Somebody closes it by hand."""


TURNS: Mapping[tuple[BreakerState, BreakerEvent], BreakerState] = {
    (BreakerState.CLOSED, BreakerEvent.TOO_MANY_FAILED): BreakerState.OPEN,
    (BreakerState.OPEN, BreakerEvent.TIME_PASSED): BreakerState.HALF_OPEN,
    (BreakerState.HALF_OPEN, BreakerEvent.PROBE_FAILED): BreakerState.OPEN,
    (BreakerState.HALF_OPEN, BreakerEvent.PROBES_PASSED): BreakerState.CLOSED,
    **{(state, BreakerEvent.TRIP): BreakerState.OPEN for state in BreakerState},
    **{(state, BreakerEvent.RESET): BreakerState.CLOSED for state in BreakerState},
}
"""From a state, by an event, to a state. What is not here changes nothing."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """When a kind whose attempts fail is left alone, and for how long.

    - `share`: it opens when at least this part of the attempts that ended within `window` seconds failed; half of them
      if neither this nor `failures` is said. Fewer than `min_attempts` say nothing.
    - `failures`: it opens when so many failed within `window` seconds, however many did not.
    - `open_for`: for so many seconds nothing of the kind starts then.
    - `probes`: so many may start after that, and as many again each `open_for` while these tell nothing. One that fails
      opens it again; when so many have succeeded, it is closed.

    An attempt that failed, timed out or was lost with its worker is a failure, tried again or not. Cancelled, snoozed
    and handed back ones tell nothing, nor do payloads that the handler cannot take.

    Raises `Invalid` with the field's name when a value is out of range.
    """

    share: float | None = None
    failures: int | None = None
    window: float = 60.0
    min_attempts: int = 10
    open_for: float = 30.0
    probes: int = 1

    def __post_init__(self) -> None:
        if self.share is None and self.failures is None:
            object.__setattr__(self, "share", SHARE_DEFAULT)
        if self.share is not None and (not _is_number(self.share) or not 0 < self.share <= 1):
            raise Invalid("share must be above 0, and 1 at most", field="share")
        if self.failures is not None:
            _check_count(self.failures, "failures", LIMIT_MAX)
        _check_count(self.min_attempts, "min_attempts", LIMIT_MAX)
        _check_count(self.probes, "probes", BREAKER_PROBES_MAX)
        _check_seconds(self.window, "window", BREAKER_WINDOW_MIN_US, BREAKER_WINDOW_MAX_US)
        _check_seconds(self.open_for, "open_for", BREAKER_OPEN_MIN_US, BREAKER_OPEN_MAX_US)

    @property
    def open_us(self) -> int:
        """How long it stays open."""
        return round(self.open_for * SECOND_US)

    @property
    def window_us(self) -> int:
        """How far back it looks."""
        return round(self.window * SECOND_US)

    def bucket_us(self, now_us: int) -> int:
        """The beginning of the part of the window in which an outcome is counted now."""
        return now_us - now_us % (self.window_us // BREAKER_BUCKETS)

    def judge(self, state: BreakerState, counted: "Counted") -> BreakerEvent | None:
        """What the outcomes since its last change make of it: those of the window while it is closed, else all."""
        if state is BreakerState.HALF_OPEN:
            if counted.failures:
                return BreakerEvent.PROBE_FAILED
            return BreakerEvent.PROBES_PASSED if counted.attempts >= self.probes else None
        if state is BreakerState.CLOSED and self._are_too_many(counted):
            return BreakerEvent.TOO_MANY_FAILED
        return None

    def _are_too_many(self, counted: "Counted") -> bool:
        if self.failures is not None and counted.failures >= self.failures:
            return True
        if self.share is None or counted.attempts < self.min_attempts:
            return False
        return counted.failures >= self.share * counted.attempts


class Counted(NamedTuple):
    """How many attempts have ended, and how many of them failed."""

    attempts: int
    failures: int


class BreakerTurn(NamedTuple):
    """A breaker has changed. `until_us`: when it lets probes through; `None` when it is closed."""

    organization: str
    kind: str
    state: BreakerState
    event: BreakerEvent
    counted: Counted
    until_us: int | None


def state_at(until_us: int | None, now_us: int) -> BreakerState:
    """The state of a breaker that is open until then; `None`: it is not."""
    if until_us is None:
        return BreakerState.CLOSED
    return BreakerState.OPEN if now_us < until_us else BreakerState.HALF_OPEN


def check_breaker(said: object) -> Breaker | None:
    """`said` itself. Raises `Invalid` where it is something else."""
    if said is None or isinstance(said, Breaker):
        return said
    raise Invalid("breaker must be a perdure.Breaker", field="breaker")


def failed(state: TaskState | None, sent: Settlement) -> bool | None:
    """Whether an attempt failed that this settlement ended, with its task in `state` now. `None`: it tells nothing.

    The state decides first: a receipt or a cancel makes another end of it than was sent.
    """
    if state in GOOD_ENDS:
        return False
    if state in (None, TaskState.CANCELLED) or sent.reason is Reason.BAD_PAYLOAD:
        return None
    if sent.attempt is AttemptState.LOST:
        # What is lost while time is in doubt is nobody's failure.
        return True if sent.charge in (Charge.LOSS, Charge.LOSS_AND_ATTEMPT) else None
    return True if sent.attempt is AttemptState.FAILED else None


def _is_number(said: object) -> bool:
    return isinstance(said, int | float) and not isinstance(said, bool)


def _check_count(said: object, field: str, most: int) -> None:
    if isinstance(said, bool) or not isinstance(said, int) or not 1 <= said <= most:
        raise Invalid(f"{field} must be a whole number between 1 and {most:,}", field=field)


def _check_seconds(said: float, field: str, low_us: int, high_us: int) -> None:
    low, high = low_us / SECOND_US, high_us / SECOND_US
    if not _is_number(said) or not low <= said <= high:
        raise Invalid(f"{field} must be between {low:.12g} and {high:.12g} seconds", field=field)
