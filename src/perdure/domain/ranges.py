"""The range of every number that can be chosen: one place, for whoever takes one and for the documentation."""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from perdure.domain import limits
from perdure.errors import Invalid

SECONDS = "s"


class Range(NamedTuple):
    """From `low` to `high`, both of them allowed. What is not counted in seconds is a whole number."""

    low: float
    high: float
    unit: str = SECONDS

    def __str__(self) -> str:
        return f"{self.bounds} {self.unit}"

    @property
    def bounds(self) -> str:
        """`low to high`, without the unit."""
        return f"{self.low:.12g} to {self.high:.12g}"

    def check(self, name: str, value: object) -> None:
        """Raise `Invalid` with `name` in `field` for what is no number of this range."""
        number = int if self.unit != SECONDS else int | float
        fits = isinstance(value, number) and not isinstance(value, bool) and math.isfinite(value)
        if not fits or not self.low <= value <= self.high:  # type: ignore[operator]
            raise Invalid(f"setting {name} must be {self}, not {value!r}", field=name)


def _seconds(low_us: int, high_us: int) -> Range:
    return Range(limits.seconds(low_us), limits.seconds(high_us))


RANGES: Mapping[str, Range] = MappingProxyType(
    {
        "busy_timeout": Range(0.1, 600),
        "cancel_grace": _seconds(0, limits.CANCEL_GRACE_MAX_US),
        "claim_wait": Range(0, 30),
        "client_rate": Range(1, limits.CLIENT_RATE_MAX, "requests a second"),
        "concurrency": Range(1, limits.CONCURRENCY_MAX, "tasks"),
        "connections": Range(1, limits.CONNECTIONS_LIMIT, "connections"),
        "control_interval": Range(0.01, 60),
        "default_timeout": _seconds(limits.TIMEOUT_MIN_US, limits.TIMEOUT_MAX_US),
        "execution_limit": _seconds(limits.EXECUTION_LIMIT_MIN_US, limits.EXECUTION_LIMIT_MAX_US),
        "grace": Range(0, 86_400),
        # Missed once, a worker still counts as alive.
        "heartbeat": Range(0.1, limits.seconds(limits.WORKER_ACTIVE_DEFAULT_US) / 2),
        "lease": _seconds(limits.LEASE_MIN_US, limits.LEASE_MAX_US),
        "max_tasks": Range(1, 10**12, "tasks"),
        "payload_max_bytes": Range(1, limits.PAYLOAD_MAX_BYTES, "bytes"),
        "poll": Range(0.01, 3_600),
        # 0: off.
        "priority_ageing": _seconds(0, limits.PRIORITY_AGEING_MAX_US),
        "prefetch": Range(0, limits.CONCURRENCY_MAX, "tasks"),
        "report_interval": Range(0.01, 10),
        "retention": _seconds(0, limits.RETENTION_MAX_US),
        "retention_by_state": _seconds(0, limits.RETENTION_MAX_US),
        "stop_grace": _seconds(0, limits.TIMEOUT_GRACE_US),
        "unroutable_after": _seconds(0, limits.EXECUTION_LIMIT_MAX_US),
        "worker_active": _seconds(limits.SECOND_US, limits.WORKER_ACTIVE_MAX_US),
    }
)
"""By the setting's name."""
