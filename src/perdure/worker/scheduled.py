"""What a task knows of the schedule that made it."""

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Scheduled(NamedTuple):
    """A schedule and one of its instants."""

    name: str
    instant: datetime


class _Made(msgspec.Struct):
    name: str
    instant_us: int


class _Options(msgspec.Struct):
    schedule: _Made | None = None


def scheduled_by(options: str | None) -> Scheduled | None:
    """The schedule and the instant that a task was made for; `None` for one that was submitted by somebody."""
    if options is None:
        return None
    made = msgspec.json.decode(options, type=_Options).schedule
    return None if made is None else Scheduled(made.name, _EPOCH + timedelta(microseconds=made.instant_us))
