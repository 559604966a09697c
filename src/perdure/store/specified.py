"""What of a task's specification a redrive with another payload has to know."""

from typing import NamedTuple


class Specified(NamedTuple):
    """What a task was submitted with that bears on another payload."""

    kind: str
    queue: str
    priority: int
    options: str | None
    """JSON: its unique key, its gates, the fields that results of others fill (`bindings`), and others."""
