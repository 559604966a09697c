"""Names that hold where nobody says otherwise, and what a queue's document says where it says nothing."""

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
