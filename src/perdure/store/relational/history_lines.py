"""The lines of histories: how they are ordered and named.

A line is placed by (instant, generation, fence, rank): the fence tells attempts apart, the rank orders what happened in
one instant of one attempt. Together they make the line's id, so that it stays the same whatever happens afterwards.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from perdure.store.views import EventView


class Rank:
    """The order of lines of one instant, generation and fence. Waiting stands behind the attempt before it."""

    SUBMITTED = 0
    LEASED = 10
    STARTED = 20
    TOLD = 30
    CANCEL_REQUESTED = 40
    CANCEL_DELIVERED = 45
    CANCEL_STOPPED = 55
    ATTEMPT_ENDED = 60
    ENDED = 70
    AFTER_END = 75
    WAITED = 80
    QUEUED = 82
    CANCEL_REQUESTED_WAITING = 85
    ENDED_WAITING = 90


class Line(NamedTuple):
    """One line. `e` is the number of an explicit event, 0 for a derived line."""

    at_us: int
    generation: int
    fence: int
    rank: int
    e: int
    type: str
    actor: str
    initiator: str | None
    data: dict[str, Any]

    def place(self) -> tuple[int, int, int, int, int]:
        """Where the line stands."""
        return self[:5]

    def view(self) -> EventView:
        """The line as it is read. Its id sorts as text in the order of the history."""
        id = f"{self.at_us:016d}-{self.generation:04d}-{self.fence:016d}-{self.rank:02d}-{self.e:012d}"
        return EventView(
            id=id,
            at_us=self.at_us,
            type=self.type,
            actor=self.actor,
            initiator=self.initiator,
            generation=self.generation,
            data={name: value for name, value in self.data.items() if value is not None},
        )


class EventRow(msgspec.Struct):
    """One explicit event as it is stored."""

    e: int
    at_us: int
    generation: int
    type: str
    actor: str
    initiator: str | None
    data: dict[str, Any] | None
    task: str | None = None


def in_order(lines: Iterable[Line]) -> list[EventView]:
    """The history that the lines make."""
    return [line.view() for line in sorted(lines, key=Line.place)]
