"""Kinds with limits by key, and whose keys take turns; and a second account of what may be at work for each key.

The account knows the limits as their kinds declare them and the keys from the payloads; it knows nothing of gates.
"""

import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from perdure.domain.limit import Limit
from perdure.domain.states import HELD, TaskState
from perdure.domain.transitions import Event
from simulation.coverage import Coverage
from simulation.known import Commit, Known, Step

SECOND_US = 1_000_000
KEYS = ("a", "b", "c")

KINDS: dict[str, dict[str, Any]] = {
    "narrow": {"limits": (Limit(concurrency=2, by="key"),), "lease": 8.0},
    "rated": {"limits": (Limit(rate=2, per=6.0, by="key"), Limit(concurrency=3)), "lease": 8.0},
    "ordered": {"limits": (Limit(ordered=True, by="key"),), "lease": 8.0},
    "both": {"limits": (Limit(ordered=True, by="key"), Limit(rate=3, per=4.0)), "lease": 6.0},
    "first": {"limits": (Limit(concurrency=1, by="key", when_full="cancel_newest"),)},
    "newest": {"limits": (Limit(concurrency=1, by="key", when_full="cancel_running"),)},
    "turns": {"fair_by": ("key",), "priority": 5, "lease": 8.0},
    "shared": {
        "fair_by": ("key",),
        "limits": (Limit(concurrency=2), Limit(rate=4, per=3.0)),
        "priority": 5,
        "lease": 8.0,
    },
}
ALONE = frozenset({"newest"})
"""Kinds of which no job has tasks: there it could not be told who asks a holder to stop."""
IN_LINE = frozenset({Event.SUBMIT, Event.PROMOTE, Event.REDRIVE, Event.REVIVE})
"""What lets a task join the end of its lane. Others come back to its head."""
AT_WORK = HELD | {TaskState.QUEUED}


def key(chance: random.Random) -> str:
    """A key, mostly the same one."""
    return chance.choice((KEYS[0], *KEYS))


class Place(NamedTuple):
    """Where tasks share a limit: organization, kind, the limit, and the key where it holds for each by itself."""

    organization: str
    kind: str
    limit: int
    key: str | None


class GateAccount:
    """Who is at work for which key. What a commit did is judged once all of it is seen."""

    def __init__(self, wrong: Callable[[str], None], coverage: Coverage) -> None:
        self._wrong = wrong
        self._coverage = coverage
        self._at_work: dict[Place, set[str]] = defaultdict(set)
        self._starts: dict[Place, deque[int]] = defaultdict(deque)
        self._begun: dict[Place, dict[str, Known]] = defaultdict(dict)
        """Of an order: those that were claimed and have not ended."""
        self._untouched: dict[Place, dict[str, Known]] = defaultdict(dict)
        """Of an order: those that wait for nothing but their turn since they were submitted."""
        self._in_line: dict[tuple[str, ...], dict[str, tuple[int, str]]] = defaultdict(dict)
        """By lane: who joined its end and has not been claimed, in which commit, and with which key."""
        self._come_back: set[str] = set()
        """Who was claimed in its turn and came back: it needs none again, even where it waits for another start."""
        self._commits = 0
        self._touched: set[Place] = set()
        self._claimed: list[tuple[tuple[str, ...], str, int]] = []

    def before(self, commit: Commit) -> None:
        """A commit is going to be looked at."""
        self._commits += 1
        self._touched.clear()
        self._claimed.clear()
        if commit.verb == "postpone":
            # One that waits for its turn stays pending, and loses it.
            self._come_back.discard(commit.arguments[1])
            for untouched in self._untouched.values():
                untouched.pop(commit.arguments[1], None)

    def moved(self, commit: Commit, step: Step) -> None:
        """A task has moved."""
        said = KINDS.get(step.known.row.kind)
        if said is None:
            return
        for place, limit in _places(step.known, said):
            if limit.ordered:
                self._move_in_order(place, commit, step)
            elif limit.rate is not None:
                self._start_at_rate(place, limit, commit, step)
            else:
                self._work(place, step)
        if "fair_by" in said:
            self._move_in_line(step)

    def after(self, commit: Commit) -> None:
        """Judge what it did."""
        for place in self._touched:
            slots = _limit(place).concurrency
            at_work = self._at_work[place]
            if slots is not None and len(at_work) > slots:
                self._wrong(f"{commit.verb} has {sorted(at_work)} at work at {place}, the limit is {slots}")
            self._coverage.feats["a concurrency is full"] += len(at_work) == slots
        for lane, id, joined in self._claimed:
            for other, (since, other_key) in self._in_line[lane].items():
                if since < joined:
                    self._wrong(f"{id} was claimed before {other} ({other_key}), which was in line before it")
        for lane in {lane for lane, _, _ in self._claimed}:
            if len(self._in_line[lane]) > 0:
                self._coverage.feats["keys took turns"] += 1

    # Concurrency

    def _work(self, place: Place, step: Step) -> None:
        at_work = self._at_work[place]
        if step.new in AT_WORK:
            at_work.add(step.known.row.id)
        else:
            at_work.discard(step.known.row.id)
        if step.known.reason == "superseded" and step.new is TaskState.CANCELLED:
            self._superseded(place, step)
        self._touched.add(place)

    def _superseded(self, place: Place, step: Step) -> None:
        when_full = _limit(place).when_full
        sort = "held" if step.old in HELD else "waiting"
        self._coverage.feats[f"{when_full}: {sort}"] += 1
        others = self._at_work[place] - {step.known.row.id}
        if when_full == "cancel_newest" and (step.old in HELD or not others):
            self._wrong(f"{step.known.row.id} was {step.old} and made way at {place}, where {others} are at work")

    # Rates

    def _start_at_rate(self, place: Place, limit: Limit, commit: Commit, step: Step) -> None:
        if step.new is not TaskState.LEASED:
            return
        starts = self._starts[place]
        starts.append(commit.now_us)
        per_us = round((limit.per or 0) * SECOND_US)
        while starts[0] <= commit.now_us - per_us:
            starts.popleft()
        if len(starts) > (limit.rate or 0):
            self._wrong(f"{len(starts)} tasks have started at {place} within {limit.per} s, the rate is {limit.rate}")
        self._coverage.feats["a rate is spent"] += len(starts) == limit.rate

    # Orders

    def _move_in_order(self, place: Place, commit: Commit, step: Step) -> None:
        known, begun, untouched = step.known, self._begun[place], self._untouched[place]
        id = known.row.id
        if step.begins and known.generation == 1 and commit.verb == "submit" and not _is_delayed(known, commit):
            untouched[id] = known
        elif step.event != Event.PROMOTE and step.new is not TaskState.LEASED:
            untouched.pop(id, None)
        if step.new is TaskState.LEASED:
            if others := sorted(begun.keys() - {id}):
                self._wrong(f"{id} was claimed while {others} of its order {place} have begun and not ended")
            earlier = [each.row.id for each in untouched.values() if each.number < known.number]
            if earlier and known.generation == 1 and id not in begun:
                self._wrong(f"{id} was claimed before {earlier}, which come first in the order {place}")
            self._coverage.feats["others waited for their turn in an order"] += len(untouched) > 1
            untouched.pop(id, None)
            begun[id] = known
        elif not known.open or step.event == Event.POSTPONE or commit.verb == "postpone":
            begun.pop(id, None)
        elif step.new is TaskState.RETRYING:
            self._coverage.feats["an order waited for a retry"] += 1

    # Turns

    def _move_in_line(self, step: Step) -> None:
        row = step.known.row
        lane = (row.organization, row.kind, row.queue, str(row.priority))
        line = self._in_line[lane]
        if step.event in (Event.HAND_BACK, Event.LOSE) and step.new is TaskState.QUEUED:
            self._come_back.add(row.id)
        elif step.event not in (Event.POSTPONE, Event.PROMOTE):
            self._come_back.discard(row.id)
        if step.new is TaskState.QUEUED and step.event in IN_LINE and row.id not in self._come_back:
            own = _key_of(step.known)
            twins = [id for id, (_, other) in line.items() if other == own]
            if twins:
                self._wrong(f"{row.id} is in line together with {twins} of its key {own}")
            line[row.id] = (self._commits, own)
            return
        joined = line.pop(row.id, None)
        if joined is not None and step.new is TaskState.LEASED:
            self._claimed.append((lane, row.id, joined[0]))


def _limit(place: Place) -> Limit:
    limit: Limit = KINDS[place.kind]["limits"][place.limit]
    return limit


def _places(known: Known, said: dict[str, Any]) -> Iterator[tuple[Place, Limit]]:
    for at, limit in enumerate(said.get("limits", ())):
        yield Place(known.row.organization, known.row.kind, at, _key_of(known) if limit.by else None), limit


def _key_of(known: Known) -> str:
    payload = msgspec.json.decode(known.row.payload or b"{}")
    return str(payload.get("key"))


def _is_delayed(known: Known, commit: Commit) -> bool:
    tasks = {task.id: task for task in commit.arguments[0]}
    task = tasks.get(known.row.id)
    return task is None or task.rare.delay_us is not None or task.rare.run_at_us is not None
