"""What can be read of what may start: gates at which tasks wait, and what is stopped.

All times are microseconds since 1970 UTC by the store's clock.
"""

from typing import NamedTuple

import msgspec

from perdure.domain.gate import GateSort, WhenFull
from perdure.domain.states import TaskState

COUNTED_MAX = 1_000
"""So many tasks are counted at a gate."""
SHOWN_MAX = 10
"""So many tasks are told of those at a gate."""


class SlotView(msgspec.Struct, frozen=True, kw_only=True):
    """A slot that is taken."""

    task: str | None
    """The id of the task; `None` where it was removed since."""
    state: TaskState | None
    worker: str | None
    """The worker that holds the task now."""
    since_us: int
    free_us: int | None = None
    """When the slot is free by itself: that of a rate whose task has started."""


class WaiterView(msgspec.Struct, frozen=True, kw_only=True):
    """A task that waits at a gate."""

    task: str
    created_us: int


class GateView(msgspec.Struct, frozen=True, kw_only=True):
    """A gate as it stands. `key` says the values of the fields by which it holds, as JSON, or its digest where that is
    long; it is empty where all tasks of the kind share the gate.
    """

    sort: GateSort
    name: str
    key: str
    slots: int
    per: float | None = None
    """Seconds for which a start keeps its slot; of a rate only."""
    when_full: WhenFull
    taken: int
    """At most `COUNTED_MAX` are counted."""
    waiting: int
    """At most `COUNTED_MAX` are counted."""
    holders: tuple[SlotView, ...]
    """The slots that are taken, by submission of their tasks; at most `SHOWN_MAX`."""
    next: tuple[WaiterView, ...]
    """Those whose turn comes next, in this order; at most `SHOWN_MAX`."""


class GateFilter(NamedTuple):
    """Which gates of a kind a list has."""

    keys: tuple[str, ...] = ()
    """Only those with one of these keys, as `GateView` tells them."""
    waiting: bool = False
    """Only those at which tasks wait."""


class PauseView(msgspec.Struct, frozen=True, kw_only=True):
    """What starts nothing, or next to nothing."""

    type: str
    """`organization`, `queue`, `kind`, `schedule`, or `breaker`."""
    name: str
    """Of a breaker the name of its kind."""
    state: str
    """`paused`; of a breaker `open` or `half_open`."""
    since_us: int
    until_us: int | None = None
    """When it is over by itself: when a breaker lets probes through, or since when."""
    actor: str
    """Who did it; of a breaker that opened by itself `system`."""
