"""Gates: which tasks may join their lanes, which wait for a slot, and whose turn it is when one is free.

A gate's row is kept from others before its slots are counted, in the order of the gates' names: so a slot that is
given back and a task that begins to wait for it never miss each other. Whose turn it is at one gate may have others to
pass, so a transaction comes to gates more than once: it waits for those that are there only while it has none. It may
still wait for something else while it has some: for rows of a job or of tasks, or for a gate that another transaction
is making. Where two so wait for each other, the server ends one, which is run again.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from perdure.domain.gate import Gate, GateSort, WhenFull
from perdure.domain.limits import SECOND_US
from perdure.domain.task import Task
from perdure.store.relational.counting import QUEUED, count_moves
from perdure.store.relational.line import places
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.wakeups import Topic

USE_NOTED_US = 600 * SECOND_US
"""So old may be what is noted of a gate's last use."""
KEPT_US = 3600 * SECOND_US
"""So long is a gate kept that nobody uses: longer than a transaction that has found it may stay open."""

Named = tuple[str, str]
"""A task, by organization and id."""
Leaving = tuple[int, bool]
"""A task that has left its lane, by number, and whether it ended."""

_OPTION = '"gates":'
_FAIR_OPTION, _RATE_OPTION = f'["{GateSort.FAIR}",', f'["{GateSort.RATE}",'
_FRONT_BITS = 48
"""Turns at a gate: priority above, then the number of the task."""
_FAIR_BITS, _TICK_BITS, _NUMBER_BITS = 59, 12, 18
"""Turns of those whose keys take turns: priority, when they came to the gate, and the end of the task's number."""


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

    def turn(self, sort: GateSort, now_us: int) -> int:
        """Its turn at a gate of this sort."""
        if sort is GateSort.ORDER:
            return int(self.n)
        if sort is not GateSort.FAIR and any(gate.sort is GateSort.FAIR for gate in self.gates):
            ticks = now_us >> _TICK_BITS
            return int((9 - self.priority << _FAIR_BITS) + (ticks << _NUMBER_BITS) + self.n % (1 << _NUMBER_BITS))
        return int((9 - self.priority << _FRONT_BITS) + self.n)


class Passing:
    """What becomes of the tasks that are staged in `joining` and have gates."""

    def __init__(self) -> None:
        self.taken: list[tuple[int, int]] = []
        self.left: list[int] = []
        self.blocked: list[tuple[int, int, int]] = []
        self.unwanted: list[Named] = []
        self.crowded: dict[int, int] = {}


def pass_gates(tx: Transaction, due_us: int) -> list[Named]:
    """Give slots to the tasks staged in `joining` that are due by then; those that get none wait at a gate, and do not
    join.

    Returns the tasks that have to go instead of waiting, or to make way for those that wait now.
    """
    arrivals = [_Arrival(row) for row in tx.document("joining_gated", due=due_us)]
    rooms = _rooms(tx, arrivals)
    passing = Passing()
    # Those whose turn it is come first.
    for each in sorted(arrivals, key=lambda arrival: arrival.at is None):
        _arrive(each, rooms, passing, tx.now_us)
    if passing.taken:
        tx.run("slot_take", batch=batch(passing.taken))
    if passing.left:
        tx.run("gate_leave", batch=batch(passing.left), due=due_us)
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
    tx.reach("gate_try_named", document)
    tx.run("gate_add", batch=document, fresh=USE_NOTED_US)
    found = tx.latest("gate_find", batch=document)
    rooms = {row[:4]: _Room(*standing) for row, standing in zip(rows, found, strict=True)}
    return {(each.named[0], gate): rooms[each.named[0], *gate[:3]] for each in arrivals for gate in each.gates}


def _arrive(each: _Arrival, rooms: dict[tuple[str, Gate], _Room], passing: Passing, now_us: int) -> None:
    at = [(gate, rooms[each.named[0], gate]) for gate in each.gates]
    keeps = any(gate.sort is GateSort.CONCURRENCY and room.number in each.held for gate, room in at)
    for gate, room in at:
        if room.number in each.held or (keeps and gate.sort is GateSort.FAIR):
            # It had its turn when it took what it keeps. Behind somebody who waits for that it would wait for ever.
            continue
        if room.free > 0 and (each.at == room.number or not room.waited):
            room.free -= 1
            passing.taken.append((room.number, each.n))
            continue
        passing.blocked.append((each.n, room.number, each.turn(gate.sort, now_us)))
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
    """Take back the slots of tasks that have left their lanes. Returns the gates at which tasks may wait, kept from
    others until the commit.
    """
    if all(has_ended for _, has_ended in leaving) and tx.is_first_to_reach():
        return _gates(tx.run("slot_free", batch=batch([n for n, _ in leaving])))
    return take(tx, _gates(tx.run("slot_yield", batch=batch(leaving))))


def free_slots_due(tx: Transaction, count: int, since_us: int = 0) -> list[int]:
    """Take back at most `count` slots of rates whose time has passed; `since_us`: those before have been. Returns the
    gates.
    """
    return _gates(tx.run("slot_due", count=count, since=since_us))


def _gates(rows: Iterable[tuple[Any, ...]]) -> list[int]:
    return sorted({gate for (gate,) in rows if gate is not None})


def take(tx: Transaction, gates: Sequence[int]) -> list[int]:
    """Keep gates from others until the commit. Returns those at which tasks may wait, in the same order."""
    if not gates:
        return []
    document = batch(gates)
    tx.reach("gate_try", document)
    waited = {*tx.document("gate_take", batch=document)}
    return [gate for gate in gates if gate in waited]


Next = tuple[int, int, str, int, bool]
"""A task whose turn it is: number, lane, state, the gate at which it waits, and whether that is the last of its own."""


def next_at(tx: Transaction, gates: Sequence[int]) -> list[Next]:
    """The tasks whose turn it is at gates that may have room, as many as there is room for, by the order of the gates,
    which are kept from others.
    """
    found: list[Next] = tx.latest("gate_open", batch=batch(gates)) if gates else []
    return found


def pass_last(tx: Transaction, tasks: Sequence[Next]) -> None:
    """Let tasks pass the last of their gates: they take the slots that are free there, and join their lanes."""
    document = batch([(gate, n) for n, _, _, gate, _ in tasks])
    tx.run("slot_take", batch=document)
    tx.run("gate_pass", batch=document, first=places(tx, len(tasks)))
    count_moves(tx, [(lane, state, QUEUED, 1) for _, lane, state, *_ in tasks])
    tx.announce(Topic.READY)


Started = tuple[str, str, str | None]
"""A task that was claimed: organization, id and options."""


def start(tx: Transaction, started: Iterable[Started]) -> None:
    """Note that tasks start, where that counts against a rate."""
    rated = [(organization, id) for organization, id, options in started if options and _RATE_OPTION in options]
    if rated:
        # The time of the rate begins when they are on their way, not when somebody asked for them.
        tx.refresh()
        tx.run("slot_start", batch=batch(rated))
        # Who waits for the next start at these rates has a time from now on.
        tx.announce(Topic.DUE)


def free_turns(tx: Transaction, started: Iterable[Started]) -> list[int]:
    """Take back the turns of tasks that were claimed and whose keys take turns. Returns the gates in the same order, in
    which the next of their keys are to join: so nobody gains by being claimed together with others.
    """
    fair = [(organization, id) for organization, id, options in started if options and _FAIR_OPTION in options]
    turns = tx.document("slot_turns", batch=batch(fair)) if fair else []
    if turns:
        tx.run("slot_pass", batch=batch(turns))
    return [gate for gate, _ in turns]


def remove_unused(tx: Transaction, count: int) -> None:
    """Remove at most `count` gates that nobody has used for long."""
    tx.run("gate_remove", before=tx.now_us - KEPT_US - USE_NOTED_US, count=count)
