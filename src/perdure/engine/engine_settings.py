"""What can be chosen about the operations, checked when it is chosen."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from perdure.domain import limits
from perdure.domain.retention import Retention
from perdure.engine.quantities import seconds_by_state_us
from perdure.errors import Invalid


def _seconds(us: int) -> float:
    return us / limits.SECOND_US


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Durations are seconds. Raises `Invalid` with the setting's name in `field` when a value is out of range."""

    payload_max_bytes: int = limits.PAYLOAD_MAX_BYTES
    """The largest payload that is taken."""
    lease: float = _seconds(limits.LEASE_DEFAULT_US)
    """Where neither the task nor its kind says."""
    execution_limit: float = _seconds(limits.EXECUTION_LIMIT_DEFAULT_US)
    """From the first claim, where neither the task nor its kind says."""
    cancel_grace: float = _seconds(limits.CANCEL_GRACE_DEFAULT_US)
    """How long the holder of a cancelled task has to stop."""
    unroutable_after: float = _seconds(limits.UNROUTABLE_AFTER_DEFAULT_US)
    """How long a task may wait while workers serve its queue and none has its kind."""
    worker_active: float = _seconds(limits.WORKER_ACTIVE_DEFAULT_US)
    """How long after its last sign a worker counts as alive."""
    retention: float = _seconds(limits.RETENTION_DEFAULT_US)
    """How long what has ended is kept."""
    retention_by_state: Mapping[str, float] = field(default_factory=dict)
    """How long instead, for ends of these states."""

    def __post_init__(self) -> None:
        size = self.payload_max_bytes
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= limits.PAYLOAD_MAX_BYTES:
            raise Invalid(
                f"payload_max_bytes must be a whole number between 1 and {limits.PAYLOAD_MAX_BYTES}",
                field="payload_max_bytes",
            )
        for name, low_us, high_us in (
            ("lease", limits.LEASE_MIN_US, limits.LEASE_MAX_US),
            ("execution_limit", limits.EXECUTION_LIMIT_MIN_US, limits.EXECUTION_LIMIT_MAX_US),
            ("cancel_grace", 0, limits.CANCEL_GRACE_MAX_US),
            ("unroutable_after", 0, limits.EXECUTION_LIMIT_MAX_US),
            ("worker_active", limits.SECOND_US, limits.WORKER_ACTIVE_MAX_US),
            ("retention", 0, limits.RETENTION_MAX_US),
        ):
            _check_seconds(name, getattr(self, name), low_us, high_us)
        seconds_by_state_us(self.retention_by_state, "retention_by_state")

    @property
    def lease_us(self) -> int:
        """`lease` in microseconds."""
        return round(self.lease * limits.SECOND_US)

    @property
    def execution_limit_us(self) -> int:
        """`execution_limit` in microseconds."""
        return round(self.execution_limit * limits.SECOND_US)

    @property
    def cancel_grace_us(self) -> int:
        """`cancel_grace` in microseconds."""
        return round(self.cancel_grace * limits.SECOND_US)

    @property
    def unroutable_after_us(self) -> int:
        """`unroutable_after` in microseconds."""
        return round(self.unroutable_after * limits.SECOND_US)

    @property
    def worker_active_us(self) -> int:
        """`worker_active` in microseconds."""
        return round(self.worker_active * limits.SECOND_US)

    @property
    def kept(self) -> Retention:
        """`retention` and `retention_by_state` as one."""
        by_state = seconds_by_state_us(self.retention_by_state, "retention_by_state")
        return Retention(round(self.retention * limits.SECOND_US), by_state)


def _check_seconds(name: str, value: object, low_us: int, high_us: int) -> None:
    fits = (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and low_us <= value * limits.SECOND_US <= high_us
    )
    if not fits:
        raise Invalid(
            f"{name} must be between {_seconds(low_us):g} and {_seconds(high_us):g} seconds, not {value!r}",
            field=name,
        )
