"""Gates: which tasks may join their lanes, which wait for a slot, and whose turn it is when one is free.

A gate's row is kept from others before its slots are counted, in the order of the gates' names: so a slot that is
given back and a task that begins to wait for it never miss each other.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from perdure.domain.gate import Gate, GateSort, WhenFull
from perdure.domain.limits import SECOND_US
from perdure.domain.task import Task
from perdure.store.relational.transaction import Transaction, batch

USE_NOTED_US = 600 * SECOND_US
"""So old may be what is noted of a gate's last use."""
KEPT_US = 3600 * SECOND_US
"""So long is a gate kept that nobody uses: longer than a transaction that has found it may stay open."""

Named = tuple[str, str]
"""A task, by organization and id."""
Leaving = tuple[int, bool]
"""A task that has left its lane, by number, and whether it ended."""

_OPTION = '"gates":'
_FRONT_BITS = 48
"""Turns at a gate: priority above, then the number of the task."""


def has_gates(options: str | None) -> bool:
    """Whether a task with these options has gates."""
    return options is not None and _OPTION in options and bool(msgspec.json.decode(options).get("gates"))


def gated(tasks: Sequence[Task], numbers: Sequence[int]) -> list[int]:
    """The numbers of those of the tasks that have gates."""
    return [n for task, n in zip(tasks, numbers, strict=True) if has_gates(task.rare.options)]


class _Room:
    """A gate as it stands while tasks pass it."""

    __slots__ = ("free", "number", "slots", "waited", "when_full")

    def __init__(self, number: int, slots: int, taken: int, waited: bool, when_full: str) -> None:
        self.number = number
        self.slots = slots
        self.free = slots - taken
        self.waited = waited
        self.when_full = WhenFull(when_full)


class _Arrival:
    """A task that would join its lane."""

    __slots__ = ("at", "gates", "held", "lane", "n", "named", "priority", "submitted_us")

    def __init__(self, row: Sequence[Any]) -> None:
        self.n, self.lane, _, self.priority, self.at, self.submitted_us, organization, id, gates, held = row
        self.named: Named = (organization, id)
        self.gates = [Gate._make((GateSort(sort), *rest)) for sort, *rest in gates]
        self.held = frozenset(held)

    def turn(self, sort: GateSort) -> int:
        """Its turn at a gate of this sort."""
        return int(self.n) if sort is GateSort.ORDER else (9 - self.priority << _FRONT_BITS) + self.n


class Passing:
    """What becomes of the tasks that are staged in `joining` and have gates."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int]] = []
        self.left: list[int] = []
        self.blocked: list[tuple[int, int, int]] = []
        self.unwanted: list[Named] = []
        self.crowded: dict[int, int] = {}


def pass_gates(tx: Transaction) -> list[Named]:
    """Give slots to the tasks staged in `joining`; those that get none wait at a gate, and are not to join.

    Returns the tasks that have to go instead of waiting, or to make way for those that wait now.
    """
    arrivals = [_Arrival(row) for row in tx.document("joining_gated")]
    rooms = _rooms(tx, arrivals)
    passing = Passing()
    # Those whose turn it is come first.
    for each in sorted(arrivals, key=lambda arrival: arrival.at is None):
        _arrive(each, rooms, passing)
    if passing.taken:
        tx.run("slot_take", batch=batch(passing.taken))
    if passing.left:
        tx.run("gate_leave", batch=batch(passing.left))
    if passing.blocked:
        tx.run("gate_wait", batch=batch(passing.blocked))
    surplus = tx.document("gate_surplus", batch=batch(list(passing.crowded.items()))) if passing.crowded else []
    return passing.unwanted + [(organization, id) for organization, id in surplus]


def _rooms(tx: Transaction, arrivals: Sequence[_Arrival]) -> dict[tuple[str, Gate], _Room]:
    asked: dict[tuple[str, ...], tuple[Any, ...]] = {}
    for each in sorted(arrivals, key=lambda arrival: int(arrival.submitted_us)):
        for gate in each.gates:
            identity = (each.named[0], *gate[:3])
            asked[identity] = (*identity, gate.slots, gate.per_us, gate.when_full, each.submitted_us)
    rows = [asked[identity] for identity in sorted(asked)]
    document = batch(rows)
    tx.run("gate_add", batch=document, fresh=USE_NOTED_US)
    found = tx.document("gate_find", batch=document)
    rooms = {row[:4]: _Room(*standing) for row, standing in zip(rows, found, strict=True)}
    return {(each.named[0], gate): rooms[each.named[0], *gate[:3]] for each in arrivals for gate in each.gates}


def _arrive(each: _Arrival, rooms: dict[tuple[str, Gate], _Room], passing: Passing) -> None:
    for gate in each.gates:
        room = rooms[each.named[0], gate]
        if room.number in each.held:
            continue
        if room.free > 0 and (each.at == room.number or not room.waited):
            room.free -= 1
            passing.taken.append((room.number, each.n))
            continue
        passing.blocked.append((each.n, room.number, each.turn(gate.sort)))
        if room.when_full is WhenFull.CANCEL_NEWEST:
            passing.unwanted.append(each.named)
        else:
            room.waited = True
        if room.when_full is WhenFull.CANCEL_RUNNING:
            passing.crowded[room.number] = room.slots
        return
    if each.at is not None:
        passing.left.append(each.n)


def free_slots(tx: Transaction, leaving: Sequence[Leaving]) -> list[int]:
    """Take back the slots of tasks that have left their lanes. Returns the gates."""
    return _gates(tx.run("slot_free", batch=batch(leaving)))


def free_slots_due(tx: Transaction, count: int) -> list[int]:
    """Take back at most `count` slots of rates whose time has passed. Returns the gates."""
    return _gates(tx.run("slot_due", count=count))


def _gates(rows: Iterable[tuple[Any, ...]]) -> list[int]:
    return sorted({gate for (gate,) in rows})


def stage_next(tx: Transaction, gates: Collection[int]) -> bool:
    """Stage in `joining` the tasks whose turn it is at gates that may have room. Returns whether there are any."""
    waited = tx.document("gate_take", batch=batch(sorted(gates))) if gates else None
    room = tx.document("gate_room", batch=batch(waited)) if waited else None
    if not room:
        return False
    tx.run("gate_next", batch=batch(room))
    return True


def start(tx: Transaction, started: Iterable[tuple[str, str, str | None]]) -> None:
    """Note that tasks (organization, id, options) start, where that counts against a rate."""
    rated = [(organization, id) for organization, id, options in started if has_gates(options)]
    if rated:
        tx.run("slot_start", batch=batch(rated))


def remove_unused(tx: Transaction, count: int) -> None:
    """Remove at most `count` gates that nobody has used for long."""
    tx.run("gate_remove", before=tx.now_us - KEPT_US - USE_NOTED_US, count=count)
