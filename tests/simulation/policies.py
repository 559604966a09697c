"""What operators say of queues, organizations and kinds: pauses, limits, shares; and a second account of each claim.

The account reads the documents as they stand at the claim's commit, and counts for itself who is held and who started.
"""

import asyncio
import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from perdure.domain.states import HELD, TaskState
from perdure.engine.engine import Engine
from perdure.engine.requests import KindDefinition, Principal
from simulation import breakers, gated
from simulation.coverage import Coverage
from simulation.gated import SECOND_US
from simulation.known import Commit, Known, Step
from simulation.observer import Observer, Policy

if TYPE_CHECKING:
    from simulation.world import World

OPERATOR = Principal("operator")
KINDS = gated.KINDS | breakers.KINDS
ELSEWHERE = "acme"
"""Another organization."""
PER = {"queue": 5.0, "organization": 3.0}
"""The time of rates: always the same, so that a window can be told."""
WEIGHTS = {"default": 1.0, ELSEWHERE: 3.0}
KEPT = ("weight", "dead_letters", "paused")
"""What stays of a document when its limits change."""
QUEUES = ("default", "aside", "plain")
UNKNOWN = "unknown"
"""A kind that no worker has."""

Holder = tuple[str, str, str]
"""Organization, type and name of what has a document."""


def limits(chance: random.Random, type: str) -> dict[str, Any]:
    """What a document says about how much may run. Nothing that would take an hour to get through."""
    said: dict[str, Any] = {}
    if chance.random() < 0.6:
        said["concurrency"] = chance.choice((1, 2, 3, 5))
    if chance.random() < 0.5:
        said |= {"rate": chance.choice((2, 4, 8)), "per": PER[type]}
    return said


async def declare(engine: Engine, kinds: list[KindDefinition]) -> None:
    """What is said at the beginning of a life: kinds with limits, shares, and that `plain` keeps no dead letters."""
    for organization, weight in WEIGHTS.items():
        by = OPERATOR._replace(organization=organization)
        await engine.declare([each for each in kinds if each.kind in KINDS], by)
        await engine.put_definition("organization", organization, {"weight": weight}, by)
    for name in QUEUES:
        await engine.put_definition("queue", name, {"dead_letters": name != "plain"}, OPERATOR)


async def resume(engine: Engine) -> None:
    """Let everything be claimed, as an operator would. Limits stay: what has to wait for them comes to its end, too."""
    for type, names in (("queue", QUEUES), ("organization", ("default",)), ("kind", (*KINDS, "act"))):
        for name in names:
            stored = await engine.definition(type, name, OPERATOR)  # type: ignore[arg-type]
            if stored is not None and stored.value.get("paused"):
                await engine.put_definition(type, name, stored.value | {"paused": False}, OPERATOR)  # type: ignore[arg-type]


async def change(engine: Engine, chance: random.Random, world: "World") -> None:
    """Say something else of a queue, an organization or a kind."""
    type = chance.choice(("queue", "queue", "organization", "kind"))
    if type == "kind":
        await _pause(engine, chance, "kind", chance.choice((*KINDS, "act")), world)
    elif chance.random() < 0.2:
        await _pause(engine, chance, "organization", "default", world)
    else:
        name = "aside" if type == "queue" else "default"
        stored = await engine.definition(type, name, OPERATOR)  # type: ignore[arg-type]
        kept = {key: value for key, value in (stored.value if stored else {}).items() if key in KEPT}
        await engine.put_definition(type, name, kept | limits(chance, type), OPERATOR)  # type: ignore[arg-type]


async def _pause(engine: Engine, chance: random.Random, type: Any, name: str, world: "World") -> None:
    for paused in (True, False):
        stored = await engine.definition(type, name, OPERATOR)
        if stored is None:
            return
        await engine.put_definition(type, name, stored.value | {"paused": paused}, OPERATOR, stored.etag)
        if paused:
            world.coverage.feats[f"a pause of a {type}"] += 1
            await asyncio.sleep(chance.uniform(1.0, 20.0))


class FlowAccount:
    """Who is held, and who started, for each queue and organization."""

    def __init__(self, wrong: Callable[[str], None], coverage: Coverage, observer: Observer) -> None:
        self._wrong = wrong
        self._coverage = coverage
        self._observer = observer
        self._held: dict[Holder, set[str]] = defaultdict(set)
        self._queued: dict[str, Known] = {}
        self._starts: dict[Holder, deque[int]] = defaultdict(deque)
        self._claimed: list[Known] = []
        self._shares = Shares(wrong, coverage)

    def forget(self, process: str) -> None:
        """A process begins anew: whose turn it is is not remembered."""
        self._shares.forget(process)

    def before(self, commit: Commit) -> None:
        """A commit is going to be looked at."""
        self._claimed.clear()

    def moved(self, commit: Commit, step: Step) -> None:
        """A task has moved."""
        id = step.known.row.id
        for holder in _holders(step.known):
            if step.new in HELD:
                self._held[holder].add(id)
            else:
                self._held[holder].discard(id)
        if step.new is TaskState.QUEUED:
            self._queued[id] = step.known
        else:
            self._queued.pop(id, None)
        if step.new is TaskState.LEASED:
            self._claimed.append(step.known)

    def after(self, commit: Commit) -> None:
        """Judge what a claim did, alone or together with what another verb did."""
        if commit.refused:
            # What it had counted for the turns of organizations is counted, though nobody got it.
            self._shares.forget(commit.who)
            return
        if not self._claimed:
            return
        policies = {(each.organization, each.type, each.name): each for each in self._observer.policies()}
        for holder, claimed in Counter(each for known in self._claimed for each in _holders(known)).items():
            if (policy := policies.get(holder)) is not None:
                self._judge(commit, holder, policy, claimed)
        waiting = [each for each in self._queued.values() if not _is_held_back(each, policies)]
        self._shares.judge(commit.who, self._claimed, waiting)

    def _judge(self, commit: Commit, holder: Holder, policy: Policy, claimed: int) -> None:
        type = holder[1]
        if policy.paused:
            self._wrong(f"claim took {claimed} tasks of {holder}, which is paused")
        held = len(self._held[holder])
        if policy.concurrency is not None:
            if held > policy.concurrency:
                self._wrong(f"{held} tasks of {holder} are held after a claim, the limit is {policy.concurrency}")
            self._coverage.feats[f"the concurrency of a {type} is full"] += held == policy.concurrency
        if policy.rate is None:
            return
        starts = self._starts[holder]
        starts.extend([commit.now_us] * claimed)
        while starts[0] <= commit.now_us - round((policy.per or 1.0) * SECOND_US):
            starts.popleft()
        if len(starts) > policy.rate:
            self._wrong(f"{len(starts)} tasks of {holder} started within {policy.per} s, the rate is {policy.rate}")
        self._coverage.feats[f"the rate of a {type} is spent"] += len(starts) == policy.rate


class Shares:
    """Whether organizations take turns, by their weights, in what each process claims."""

    def __init__(self, wrong: Callable[[str], None], coverage: Coverage) -> None:
        self._wrong = wrong
        self._coverage = coverage
        self._got: dict[tuple[str, int, str], Counter[str]] = {}
        """By process, priority and an organization that has had something waiting: what each got meanwhile."""

    def forget(self, process: str) -> None:
        """Begin anew with a process."""
        for key in [each for each in self._got if each[0] == process]:
            del self._got[key]

    def judge(self, process: str, claimed: list[Known], waiting: list[Known]) -> None:
        """A process has claimed these, and those wait still and could have been."""
        for priority in {each.row.priority for each in claimed}:
            got = Counter(each.row.organization for each in claimed if each.row.priority == priority)
            wait = {each.row.organization for each in waiting if each.row.priority == priority}
            for mine in WEIGHTS:
                key = (process, priority, mine)
                if mine not in wait:
                    self._got.pop(key, None)
                    continue
                self._got.setdefault(key, Counter()).update(got)
                self._judge_turns(key, self._got[key])

    def _judge_turns(self, key: tuple[str, int, str], got: Counter[str]) -> None:
        process, priority, mine = key
        for other in WEIGHTS.keys() - {mine}:
            most = WEIGHTS[other] / WEIGHTS[mine] * (got[mine] + 1) + 1
            if got[other] > most:
                self._wrong(
                    f"{process} took {got[other]} tasks of {other} in priority {priority} while {mine}, which waits, "
                    f"got {got[mine]}: at most {most}"
                )
            self._coverage.feats["organizations took turns"] += bool(got[mine] and got[other])


def _holders(known: Known) -> tuple[Holder, ...]:
    row = known.row
    return (
        (row.organization, "organization", row.organization),
        (row.organization, "queue", row.queue),
        (row.organization, "kind", row.kind),
    )


def _is_held_back(known: Known, policies: dict[Holder, Policy]) -> bool:
    """Whether it may have to wait though it is queued."""
    # The next of a key may have joined its line when the others of this claim had been chosen.
    if known.row.kind in (UNKNOWN, breakers.FRAIL) or "fair_by" in KINDS.get(known.row.kind, ()):
        return True
    found = [policies[each] for each in _holders(known) if each in policies]
    return any(each.paused or each.concurrency is not None or each.rate is not None for each in found)
