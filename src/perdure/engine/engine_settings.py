"""What can be chosen about the operations, checked when it is chosen."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from perdure.domain import limits
from perdure.domain.ranges import RANGES
from perdure.domain.retention import Retention
from perdure.engine.quantities import seconds_by_state_us


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSettings:
    """Durations are seconds. Raises `Invalid` with the setting's name in `field` when a value is out of range."""

    payload_max_bytes: int = limits.PAYLOAD_MAX_BYTES
    """The largest payload that is taken."""
    lease: float = limits.seconds(limits.LEASE_DEFAULT_US)
    """Where neither the task nor its kind says."""
    execution_limit: float = limits.seconds(limits.EXECUTION_LIMIT_DEFAULT_US)
    """From the first claim, where neither the task nor its kind says."""
    cancel_grace: float = limits.seconds(limits.CANCEL_GRACE_DEFAULT_US)
    """How long the holder of a cancelled task has to stop."""
    priority_ageing: float = limits.seconds(limits.PRIORITY_AGEING_DEFAULT_US)
    """For each such time that the first task of a lane has waited, the lane counts as one priority higher; 0: never."""
    unroutable_after: float = limits.seconds(limits.UNROUTABLE_AFTER_DEFAULT_US)
    """How long a task may wait while workers serve its queue and none has its kind."""
    worker_active: float = limits.seconds(limits.WORKER_ACTIVE_DEFAULT_US)
    """How long after its last sign a worker counts as alive."""
    retention: float = limits.seconds(limits.RETENTION_DEFAULT_US)
    """How long what has ended is kept."""
    retention_by_state: Mapping[str, float] = field(default_factory=dict)
    """How long instead, for ends of these states."""

    def __post_init__(self) -> None:
        for each in fields(self):
            if each.name in RANGES and each.name != "retention_by_state":
                RANGES[each.name].check(each.name, getattr(self, each.name))
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
    def priority_ageing_us(self) -> int:
        """`priority_ageing` in microseconds."""
        return round(self.priority_ageing * limits.SECOND_US)

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
