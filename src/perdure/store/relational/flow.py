"""What documents say about claims: who is paused, how much may be held or started, and whose share is how large.

Limits of queues and organizations are looked at where lanes are chosen. A gate's row stands for each: it is kept from
others until the commit, so that claims that share a limit come one after the other. How much is held is counted from
the counters of lanes, and starts at a rate are slots of the gate: nothing has to be given back, so nothing can leak.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from perdure.domain.gate import GateSort, WhenFull
from perdure.domain.limits import LIMIT_PER_DEFAULT_US, SECOND_US
from perdure.domain.why import FullLimit
from perdure.store.relational.gates import USE_NOTED_US
from perdure.store.relational.lanes import Lane
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.wakeups import Topic

Holder = tuple[str, str, str]
"""Organization, type and name of what has a document."""


class FlowLimit(NamedTuple):
    """A limit that holds for all lanes of a queue or an organization."""

    holder: Holder
    sort: GateSort
    slots: int
    per_us: int | None = None
    key: str = ""
    """Of a breaker the instant of its probes: what was spent before it opened again is nothing to those."""

    @property
    def gate(self) -> tuple[str, str, str, str]:
        """The identity of its gate. No kind's limit has such a name: names of kinds have no spaces."""
        organization, type, name = self.holder
        return organization, self.sort, f"{type} {name}", self.key


class Flow:
    """What documents and breakers say about claims; rows of organization, type, name, paused, concurrency, rate, per,
    weight, and of a breaker when it lets probes through.
    """

    def __init__(self, rows: Iterable[Sequence[Any]]) -> None:
        self._paused: set[Holder] = set()
        self._limits: dict[Holder, list[FlowLimit]] = {}
        self._weights: dict[str, float] = {}
        self._open_until_us: dict[Holder, int] = {}
        for organization, type, name, paused, concurrency, rate, per, weight, *until_us in rows:
            holder = (organization, type, name)
            if paused:
                self._paused.add(holder)
            key = str(until_us[0]) if until_us else ""
            if until_us:
                self._open_until_us[holder] = until_us[0]
                if paused:
                    continue
            if concurrency is not None:
                self._limits.setdefault(holder, []).append(FlowLimit(holder, GateSort.CONCURRENCY, concurrency))
            if rate is not None:
                per_us = LIMIT_PER_DEFAULT_US if per is None else round(per * SECOND_US)
                self._limits.setdefault(holder, []).append(FlowLimit(holder, GateSort.RATE, rate, per_us, key))
            if weight is not None and type == "organization":
                self._weights[organization] = weight

    def is_paused(self, lane: Lane) -> bool:
        """Whether nothing of the lane may be claimed."""
        return bool(self._paused) and not self._paused.isdisjoint(_holders(lane))

    def is_paused_kind(self, lane: Lane) -> bool:
        """Whether the lane's kind is paused."""
        return (lane.organization, "kind", lane.kind) in self._paused

    def open_until_us(self, lane: Lane) -> int | None:
        """When the breaker of the lane's kind lets probes through; `None` where it is closed, or there is none."""
        return self._open_until_us.get((lane.organization, "breaker", lane.kind))

    @property
    def limited(self) -> bool:
        """Whether anybody has a limit."""
        return bool(self._limits)

    def limits(self, lane: Lane) -> list[FlowLimit]:
        """The limits that hold for the lane."""
        if not self._limits:
            return []
        return [limit for holder in _holders(lane) for limit in self._limits.get(holder, ())]

    def weight(self, organization: str) -> float:
        """How large the organization's share is beside those of others."""
        return self._weights.get(organization, 1)


def _holders(lane: Lane) -> tuple[Holder, ...]:
    organization = lane.organization
    return (
        (organization, "organization", organization),
        (organization, "queue", lane.queue),
        (organization, "kind", lane.kind),
        (organization, "breaker", lane.kind),
    )


class _Room:
    __slots__ = ("free", "number", "per_us")

    def __init__(self, number: int, free: int, per_us: int | None) -> None:
        self.number = number
        self.free = free
        self.per_us = per_us

    def copy(self) -> "_Room":
        """The same room."""
        return _Room(self.number, self.free, self.per_us)


class Rooms:
    """How many tasks of which lanes may start now, by the limits that hold for them."""

    def __init__(self, rooms: Mapping[int, Sequence[_Room]]) -> None:
        self._rooms = rooms

    def has(self, lane: int) -> bool:
        """Whether one more task of the lane may start."""
        return all(room.free > 0 for room in self._rooms.get(lane, ()))

    def least(self, lane: int, want: int) -> int:
        """How many more tasks of the lane may start, at most `want`."""
        return max(0, min([want, *(room.free for room in self._rooms.get(lane, ()))]))

    def take(self, lane: int) -> None:
        """One task of the lane starts."""
        for room in self._rooms.get(lane, ()):
            room.free -= 1

    def copy(self) -> "Rooms":
        """The same rooms, to plan with."""
        copied = {id(room): room.copy() for rooms in self._rooms.values() for room in rooms}
        return Rooms({lane: [copied[id(room)] for room in rooms] for lane, rooms in self._rooms.items()})

    def spend(self, tx: Transaction, started: Iterable[tuple[int, str, str]]) -> None:
        """Note the starts of tasks (lane, organization, id) where they count against a rate."""
        rows = [
            (room.number, organization, id, room.per_us)
            for lane, organization, id in started
            for room in self._rooms.get(lane, ())
            if room.per_us is not None
        ]
        if rows:
            tx.run("slot_spend", batch=batch(rows))
            tx.announce(Topic.DUE)


UNLIMITED = Rooms({})


def rooms_of(tx: Transaction, flow: Flow, lanes: Mapping[int, Lane]) -> Rooms:
    """The rooms of lanes, with the limits that hold for them kept from others until the commit."""
    if not flow.limited:
        return UNLIMITED
    by_lane = {number: flow.limits(lane) for number, lane in lanes.items()}
    limits = sorted({limit for each in by_lane.values() for limit in each}, key=lambda limit: limit.gate)
    if not limits:
        return UNLIMITED
    document = batch([(*limit.gate, limit.slots, limit.per_us, WhenFull.QUEUE, tx.now_us) for limit in limits])
    tx.reach("gate_try_named", document)
    tx.run("gate_add", batch=document, fresh=USE_NOTED_US)
    held = tx.document("flow_held", batch=batch([limit.holder for limit in limits]))
    # What ended while this waited for its turn ended before what starts now, and what starts now counts from now on.
    standing = tx.latest("gate_find", batch=document)
    rooms = {
        limit: _Room(number, limit.slots - (starts if limit.sort is GateSort.RATE else holding), limit.per_us)
        for limit, (number, _, starts, *_), holding in zip(limits, standing, held, strict=True)
    }
    return Rooms({number: [rooms[limit] for limit in each] for number, each in by_lane.items() if each})


def flow_of(tx: Transaction, organization: str) -> Flow:
    """What the documents of one organization say."""
    return Flow(tx.document("flow_read", organization=organization))


def without_room(tx: Transaction, flow: Flow, lane: Lane) -> tuple[FullLimit, ...]:
    """The limits of a lane that have no room at this moment."""
    full = []
    for limit in flow.limits(lane):
        free_us = None
        if limit.sort is GateSort.RATE:
            gate = batch([limit.gate])
            found = tx.document("gate_find", batch=gate)
            taken = found[0][2] if found else 0
            (free_us,) = tx.document("flow_free", batch=gate)
        else:
            (taken,) = tx.document("flow_held", batch=batch([limit.holder]))
        if taken >= limit.slots:
            full.append(FullLimit(*limit.holder[1:], limit.slots, limit.per_us, free_us))
    return tuple(full)


class Limited(Protocol):
    """Whoever claims, and has seen whether there are limits."""

    limited: bool


def announcing(settle: Callable[[Any, list[Any]], list[Any]], claims: Limited) -> Callable[[Any, list[Any]], list[Any]]:
    """`settle`, which also tells other workers that there may be room where somebody has a limit."""

    def settle_and_tell(tx: Any, settlings: list[Any]) -> list[Any]:
        answers = settle(tx, settlings)
        if claims.limited:
            tx.announce(Topic.READY)
        return answers

    return settle_and_tell
