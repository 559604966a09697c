"""What tasks of one call usually have in common, and is sent or bound once for them all."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

from perdure.domain.task import Task, Terms

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

_specification = attrgetter(*SPECIFICATION)


def specification_of(terms: Terms) -> tuple[Any, ...]:
    """The fields of `SPECIFICATION`."""
    written: tuple[Any, ...] = _specification(terms)
    return written


def terms_of(tasks: Sequence[Task]) -> dict[int, Terms]:
    """The terms that there are among tasks, by the id of the object: equal ones are mostly the same object."""
    return {id(task.terms): task.terms for task in tasks}
