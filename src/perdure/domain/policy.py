"""Documents that operators keep: what a queue, an organization and a kind are allowed to do."""

from dataclasses import dataclass

DEFAULT_ORGANIZATION = "default"
DEFAULT_QUEUE = "default"
SYSTEM = "system"
"""The principal of duties."""


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """One queue of one organization. `depth` counts what waits, delayed and retrying work too; `None` is no limit."""

    paused: bool = False
    dead_letters: bool = True
    depth: int | None = None


@dataclass(frozen=True, slots=True)
class OrganizationPolicy:
    """One organization. `depth` is over all its queues."""

    paused: bool = False
    depth: int | None = None
