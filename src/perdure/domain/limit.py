"""What a kind says about how many of its tasks may run: pure values, and the gates that follow from them."""

from collections.abc import Sequence
from dataclasses import dataclass

from perdure.domain.gate import Gate, GateSort, WhenFull, in_order
from perdure.domain.limits import (
    LIMIT_BY_MAX,
    LIMIT_MAX,
    LIMIT_PER_MAX_US,
    LIMIT_PER_MIN_US,
    LIMITS_MAX,
    SECOND_US,
)
from perdure.domain.payload_fields import payload_fields
from perdure.errors import Invalid


@dataclass(frozen=True, slots=True)
class Limit:
    """How many tasks of a kind may run: exactly one of `concurrency`, `rate` and `ordered` is said.

    - `concurrency`: so many at once.
    - `rate`: so many starts in any stretch of `per` seconds, over all workers. A retry is a start too.
    - `ordered`: one after the other, in the order in which they were submitted; one that waits for a retry keeps the
      others waiting. What is delayed takes its turn when it is due.

    `by` names fields of the payload: then this holds for each of their values by itself, for each customer say. A
    field that is not there counts as null.

    `when_full` says what becomes of a task that is over a `concurrency`: it waits (`queue`), it is cancelled
    (`cancel_newest`), or the ones before it are (`cancel_running`).

    Raises `Invalid` with the field's name when a value is out of range.
    """

    concurrency: int | None = None
    rate: int | None = None
    per: float | None = None
    ordered: bool = False
    by: str | tuple[str, ...] = ()
    when_full: WhenFull = WhenFull.QUEUE

    def __post_init__(self) -> None:
        said = [self.concurrency is not None, self.rate is not None, self.ordered is True]
        if sum(said) != 1:
            raise Invalid("a limit says exactly one of concurrency, rate and ordered", field="limits")
        _check_count(self.concurrency, "concurrency")
        _check_count(self.rate, "rate")
        if (self.rate is None) != (self.per is None):
            raise Invalid(
                "a rate needs per, the seconds in which so many may start, and nothing else does", field="per"
            )
        if self.per is not None:
            _check_seconds(self.per)
        object.__setattr__(self, "by", payload_fields(self.by, LIMIT_BY_MAX))
        object.__setattr__(self, "when_full", _when_full(self.when_full))
        if self.when_full is not WhenFull.QUEUE and self.concurrency is None:
            raise Invalid("when_full is said of a concurrency only", field="when_full")

    @property
    def sort(self) -> GateSort:
        """The gate that keeps it."""
        if self.ordered:
            return GateSort.ORDER
        return GateSort.RATE if self.concurrency is None else GateSort.CONCURRENCY

    def gate(self, kind: str, key: str) -> Gate:
        """The gate for tasks of a kind whose fields `by` have these values."""
        name = f"{kind} by {', '.join(self.by)}" if self.by else kind
        per_us = None if self.per is None else round(self.per * SECOND_US)
        return Gate(self.sort, name, key, self.concurrency or self.rate or 1, per_us, self.when_full)


def check_limits(limits: Sequence[Limit]) -> tuple[Limit, ...]:
    """The limits of one kind. Raises `Invalid` where two are of one sort by the same fields, or one is no `Limit`."""
    if not isinstance(limits, list | tuple):
        raise Invalid("limits must be a list, such as [perdure.Limit(concurrency=2)]", field="limits")
    if len(limits) > LIMITS_MAX:
        raise Invalid(f"a kind may have {LIMITS_MAX} limits at most, not {len(limits)}", field="limits")
    seen = set()
    for limit in limits:
        if not isinstance(limit, Limit):
            raise Invalid("limits must be a list of perdure.Limit", field="limits")
        named = (limit.sort, limit.by)
        if named in seen:
            by = f" by {', '.join(limit.by)}" if limit.by else ""
            raise Invalid(f"limits say {limit.sort}{by} twice: keep one of them", field="limits")
        seen.add(named)
    return tuple(limits)


def gates_of(kind: str, limits: Sequence[Limit], keys: Sequence[str]) -> list[Gate]:
    """The gates of a task in the order in which it passes them; `keys` are its keys for each of the limits."""
    return in_order([limit.gate(kind, key) for limit, key in zip(limits, keys, strict=True)])


def fair_gate(kind: str, by: Sequence[str], key: str, queue: str, priority: int) -> Gate:
    """The gate for tasks of a kind whose keys take turns in their lane."""
    return Gate(GateSort.FAIR, f"{kind} by {', '.join(by)} ({queue}, {priority})", key, 1)


def check_fair_by(by: object) -> tuple[str, ...]:
    """Fields of the payload whose values take turns. Raises `Invalid`."""
    try:
        return payload_fields(by, LIMIT_BY_MAX)
    except Invalid as problem:
        raise Invalid(f"fair_{problem.message}", field="fair_by") from None


def _check_count(value: object, field: str) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= LIMIT_MAX:
        raise Invalid(f"{field} must be a whole number between 1 and {LIMIT_MAX:,}", field=field)


def _check_seconds(per: object) -> None:
    low, high = LIMIT_PER_MIN_US / SECOND_US, LIMIT_PER_MAX_US / SECOND_US
    if isinstance(per, bool) or not isinstance(per, int | float) or not low <= per <= high:
        raise Invalid(f"per must be between {low:.12g} and {high:.12g} seconds", field="per")


def _when_full(said: WhenFull) -> WhenFull:
    try:
        return WhenFull(said)
    except ValueError:
        raise Invalid(f"when_full must be one of {', '.join(WhenFull)}", field="when_full") from None
