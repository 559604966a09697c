"""Gates: what keeps a task from its lane until there is room, for limits by key. Standard library only.

A gate has so many slots. A task that is due takes one at each of its gates before it joins its lane, and waits at the
first that has none left. What differs is when a slot is free again:

- `concurrency`: once the task has no place in line and no attempt any more, whether it ended or waits for a retry.
- `order`: once the task has ended. It has one slot, so that tasks of one key run one after the other.
- `fair`: once the task was claimed. It has one slot for each key, so that keys take turns in their lane. A task
  that comes back and has kept a slot of a concurrency needs no turn again: whoever has the turn may wait for that slot.
- `rate`: a while after the attempt was claimed. So many slots are so many starts in any stretch of that length.
"""

from enum import StrEnum
from typing import NamedTuple


class GateSort(StrEnum):
    """What a slot stands for."""

    ORDER = "order"
    FAIR = "fair"
    CONCURRENCY = "concurrency"
    RATE = "rate"


class WhenFull(StrEnum):
    """What happens where a gate has no slot left."""

    QUEUE = "queue"
    """The task waits for its turn: the more urgent first, then in the order of submission."""
    CANCEL_NEWEST = "cancel_newest"
    """The task is cancelled (`superseded`)."""
    CANCEL_RUNNING = "cancel_running"
    """The task that took its slot first is cancelled (`superseded`), and this one waits for the slot."""


class Gate(NamedTuple):
    """One gate that a task has to pass. Two tasks meet at it when organization, sort, name and key are the same."""

    sort: GateSort
    name: str
    """Which limit it is: the kind and the payload's fields, as in `import.run by customer`."""
    key: str
    """The values of those fields: JSON, or a digest where that is long. Empty where the limit holds for all alike."""
    slots: int
    per_us: int | None = None
    """How long a start keeps its slot; for `rate` only."""
    when_full: WhenFull = WhenFull.QUEUE


ORDER_OF_GATES = (GateSort.ORDER, GateSort.FAIR, GateSort.CONCURRENCY, GateSort.RATE)
"""The order in which a task passes its gates. Turns come before what keys share, so that no key has all of it; a rate
comes last: its slots are spent even where nothing runs.
"""

FREED_WHEN_WAITING = frozenset({GateSort.CONCURRENCY, GateSort.FAIR})
"""Sorts whose slots are free again when the task waits for a time, for a retry say."""
FREED_AT_END = frozenset({GateSort.CONCURRENCY, GateSort.FAIR, GateSort.ORDER})
"""Sorts whose slots are free again when the task has ended."""


def in_order(gates: list[Gate]) -> list[Gate]:
    """The gates of a task in the order in which it passes them."""
    return sorted(gates, key=lambda gate: (ORDER_OF_GATES.index(gate.sort), gate.name, gate.key))
