"""Names that hold where nobody says otherwise, and what a queue's document says where it says nothing."""

from dataclasses import dataclass

DEFAULT_ORGANIZATION = "default"
DEFAULT_QUEUE = "default"
SYSTEM = "system"
"""The principal of duties."""


@dataclass(frozen=True, slots=True)
class QueuePolicy:
    """One queue of one organization. `depth` counts what waits, delayed and retrying work too; `concurrency` is how
    many may be held at once, `rate` how many may start in any stretch of `per` seconds (1 if not said). `None` is no
    limit.
    """

    paused: bool = False
    dead_letters: bool = True
    depth: int | None = None
    concurrency: int | None = None
    rate: int | None = None
    per: float | None = None


@dataclass(frozen=True, slots=True)
class OrganizationPolicy:
    """An organization, all of its queues together. `weight` is its share beside those of others that wait too."""

    paused: bool = False
    depth: int | None = None
    concurrency: int | None = None
    rate: int | None = None
    per: float | None = None
    weight: float = 1
