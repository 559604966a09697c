"""Bodies about what may start: gates and who is at them, and what is stopped."""

from datetime import datetime
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from perdure.domain import limits
from perdure.domain.gate import GateSort, WhenFull
from perdure.domain.states import TaskState
from perdure.wire import shapes

GATES_DEFAULT_ROWS = 20


class Slot(msgspec.Struct, kw_only=True, frozen=True):
    """A slot that is taken. `task` is null where it was removed since; `free_at`: when the slot is free by itself."""

    task: str | None
    state: TaskState | None
    worker: str | None
    since_at: datetime
    free_at: datetime | None = None


class Waiter(msgspec.Struct, kw_only=True, frozen=True):
    """A task that waits at a gate."""

    task: str
    created_at: datetime


class Gate(msgspec.Struct, kw_only=True, frozen=True):
    """A gate. `per`: seconds for which a start keeps its slot. Of `taken` and `waiting` 1,000 are counted at most, of
    `holders` and `next` ten are told.
    """

    sort: GateSort
    name: str
    key: str
    slots: int
    per: float | None = None
    when_full: WhenFull
    taken: int
    waiting: int
    holders: list[Slot]
    next: list[Waiter]


class Gates(msgspec.Struct, kw_only=True, frozen=True):
    """Gates of a kind, by sort, name and key, and where the next page begins."""

    gates: list[Gate]
    cursor: str | None = None


class GateQuery(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which gates of the kind. A key that is repeated means any of them."""

    key: Annotated[list[str], Meta(extra_json_schema={"maxItems": limits.GATE_KEYS_MAX})] = []
    waiting: bool = False
    """Only those at which tasks wait."""
    limit: shapes.Limit = GATES_DEFAULT_ROWS
    cursor: shapes.Cursor | None = None


class Pause(msgspec.Struct, kw_only=True, frozen=True):
    """What starts nothing. Of a breaker, `name` is that of its kind, and `until_at` is when it lets probes through."""

    type: Literal["organization", "queue", "kind", "schedule", "breaker"]
    name: str
    state: Literal["paused", "open", "half_open"]
    since_at: datetime
    until_at: datetime | None = None
    actor: str


class Pauses(msgspec.Struct, kw_only=True, frozen=True):
    """What is stopped, what has been for longest first."""

    pauses: list[Pause]
