"""What tasks of one call usually have in common, and is sent or bound once for them all."""

from operator import attrgetter
from typing import Any, Final

from perdure.domain.task import Task

LANE: Final = ("organization", "kind", "queue", "priority", "capabilities")
"""What the lane stands for."""
SPECIFICATION: Final = (
    "organization",
    "encoding",
    "principal",
    "initiator",
    "ttl_us",
    "execution_limit_us",
    "timeout_us",
    "lease_us",
    "max_attempts",
    "max_losses",
    "on_loss",
    "trigger",
    "if_failed",
    "retry",
)
"""What is written of them all, in the order in which statements read it."""
OWN: Final = (
    "id",
    "payload",
    "delay_us",
    "run_at_us",
    "idempotency_key",
    "request_hash",
    "job",
    "name",
    "waits",
    "options",
)
"""What each has of its own."""

shared_of = attrgetter(*dict.fromkeys(LANE + SPECIFICATION))
"""All that tasks of one group have in common, as a tuple."""
_specification = attrgetter(*SPECIFICATION)


def specification_of(task: Task) -> tuple[Any, ...]:
    """The fields of `SPECIFICATION`."""
    written: tuple[Any, ...] = _specification(task)
    return written
