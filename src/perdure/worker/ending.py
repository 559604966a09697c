"""Why a worker's `run` returned."""

from enum import StrEnum


class Ending(StrEnum):
    """Why a worker's `run` returned."""

    DRAINED = "drained"
    IDLE = "idle"
    RECYCLED = "recycled"
    """It has claimed `max_tasks`: start another one."""
    REVOKED = "revoked"
    ABANDONED = "abandoned"
