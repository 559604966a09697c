"""Which rows of a list come first."""

from enum import StrEnum


class Sort(StrEnum):
    """The order of a list."""

    NEWEST = "newest"
    OLDEST = "oldest"
