"""The faults of one run: which ones, how often, where. All chosen from the seed."""

import asyncio
import functools
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import apsw

from perdure.errors import StoreUnreachable
from perdure.store.sqlite.commits import Commits
from perdure.store.sqlite.statements import STATEMENTS
from simulation.coverage import CRASHES, Coverage
from simulation.processes import Process, die

if TYPE_CHECKING:
    from simulation.world import World

COMMIT = STATEMENTS["transaction_commit"]
LATE_SECONDS = 20.0
SLOW_SECONDS = 20.0
DISK_FAILS, DISK_FAILS_LATE, DISK_FULL = (
    "disk failed at a commit",
    "disk failed after a commit",
    "disk full at a commit",
)
TOLD_BY_MOVES = frozenset(
    {"submit", "submit_jobs", "promote", "expire", "redrive", "discard", "purge", "purge_queue", "postpone", "retain"}
)
"""Verbs of which the witness learns all that it needs from the rows that a commit moves."""
READS = frozenset(
    {
        "control",
        "inputs",
        "facts",
        "receipt_known",
        "find_doubtful",
        "losses_suspended_until",
        "now_us",
        "holding",
        "grower",
        "specified",
    }
)


SELDOM = frozenset(
    {
        "cancel_job",
        "discard",
        "grow",
        "inputs",
        "leave",
        "order",
        "postpone",
        "purge",
        "purge_queue",
        "receipt_known",
        "reset_breaker",
        "specified",
        "trip_breaker",
    }
)
"""Verbs that a life calls once or twice, if at all."""


@dataclass
class FaultPlan:
    """How likely each fault of a call is, and the calls at which processes are to crash."""

    lost: float
    refused: float
    repeated: float
    late: float
    slow: float
    disk: float
    hint_lost: float
    crashes: dict[tuple[str, str], int] = field(default_factory=dict)
    """(verb, before or after) -> at which of its calls."""

    @classmethod
    def drawn(cls, chance: random.Random) -> "FaultPlan":
        """A plan by chance: some runs are calm, some are wild."""

        def likely() -> float:
            return chance.choice((0.0, 0.0, 0.01, 0.03, 0.1))

        plan = cls(likely(), likely(), likely(), likely(), likely(), likely(), chance.choice((0.0, 0.3, 1.0)))
        plan.crashes = {
            (verb, when): 1 if verb in SELDOM else chance.choice((1, 1, 1, 2, 4, 9))
            for verb, when in chance.sample(CRASHES, 7)
        }
        return plan


class Network:
    """What lies between a process and its store: every call of every process passes through here."""

    def __init__(self, world: "World", plan: FaultPlan, chance: random.Random, coverage: Coverage) -> None:
        self._world = world
        self._plan = plan
        self._chance = chance
        self._coverage = coverage
        self._calls: Counter[str] = Counter()
        self.away = False
        self.calm = False
        """No more faults."""

    async def call(
        self, process: Process, verb: str, act: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]
    ) -> Any:
        """Carry one call to the store and its answer back."""
        if process.stopped:
            await die()
        if self._world.over:
            raise StoreUnreachable("the simulation is over")
        self._calls[verb] += 1
        fault = self._choose(verb)
        await self._before(process, verb, fault)
        with self._world.disk_of(process).failing(fault):
            answer = await self._world.execute(process.name, verb, act, arguments)
        if fault == "repeated at once":
            answer = await self._world.execute(process.name, verb, act, arguments)
        elif fault == "repeated later":
            self._world.later(self._chance.uniform(0.1, LATE_SECONDS), verb, arguments)
        await self._after(process, verb, fault)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _choose(self, verb: str) -> str:
        if self.calm:
            return ""
        for when, fault in (("before", "crashed before a call"), ("after", "crashed after a commit")):
            at = self._plan.crashes.get((verb, when))
            if at is not None and self._calls[verb] >= at:
                del self._plan.crashes[verb, when]
                self._coverage.crashes[verb, when] += 1
                return self._count(fault)
        plan, drawn = self._plan, self._chance.random()
        for fault, share in (
            ("answer lost", plan.lost),
            ("refused", plan.refused),
            ("repeated at once", plan.repeated),
            ("repeated later", 0.0 if verb in READS else plan.late),
            ("slow before", plan.slow / 2),
            ("slow after", plan.slow / 2),
            (DISK_FAILS, 0.0 if verb in READS else plan.disk / 3),
            (DISK_FULL, 0.0 if verb in READS else plan.disk / 3),
            (DISK_FAILS_LATE, plan.disk / 3 if verb in TOLD_BY_MOVES else 0.0),
        ):
            if drawn < share:
                return self._count(fault)
            drawn -= share
        return ""

    def _count(self, fault: str) -> str:
        self._coverage.faults[fault] += 1
        return fault

    async def _before(self, process: Process, verb: str, fault: str) -> None:
        if fault == "crashed before a call":
            self._world.crash(process, f"before {verb}")
            await die()
        await asyncio.sleep(self._latency(fault == "slow before"))
        if self.away:
            raise StoreUnreachable("the simulated store is away")
        if fault == "refused":
            raise StoreUnreachable("the simulated network refused")

    async def _after(self, process: Process, verb: str, fault: str) -> None:
        if fault == "crashed after a commit":
            self._world.crash(process, f"after {verb}")
            await die()
        if fault == "answer lost":
            raise StoreUnreachable("the simulated answer was lost")
        if fault == "slow after":
            await asyncio.sleep(self._latency(True))

    def _latency(self, slow: bool) -> float:
        return self._chance.uniform(0.5, SLOW_SECONDS) if slow else self._chance.uniform(0.0002, 0.003)

    def hint_passes(self) -> float | None:
        """The seconds after which a process hears of another one's commit; `None` when it never does."""
        if not self.calm and self._chance.random() < self._plan.hint_lost:
            self._coverage.faults["hint lost"] += 1
            return None
        return self._chance.uniform(0.005, 0.04)


class Carried:
    """A ledger, or definitions, whose every verb passes through the network."""

    def __init__(self, network: Network, process: Process, inner: Any, verbs: frozenset[str]) -> None:
        self._network = network
        self._process = process
        self._inner = inner
        self._verbs = verbs

    def __getattr__(self, verb: str) -> Any:
        act = getattr(self._inner, verb)
        if verb not in self._verbs:
            return act

        async def carried(*arguments: Any, **named: Any) -> Any:
            call = functools.partial(act, **named) if named else act
            return await self._network.call(self._process, verb, call, arguments)

        setattr(self, verb, carried)
        return carried


class Disk:
    """What a process writes through: its commits can be made to fail."""

    def __init__(self) -> None:
        self._fault = ""

    @contextmanager
    def failing(self, fault: str) -> Iterator[None]:
        """Let the next commit fail, if that is the fault."""
        self._fault = fault if fault in (DISK_FAILS, DISK_FAILS_LATE, DISK_FULL) else ""
        yield
        self._fault = ""

    def attach(self, commits: Commits) -> None:
        """Stand between the commits of a store and every connection that they have."""
        connect = commits._connect
        commits._connect = lambda: self._through(connect())
        assert commits.connection is not None
        commits._connection = self._through(commits.connection)

    def _through(self, connection: apsw.Connection) -> Any:
        return FailingConnection(connection, self)

    def commit(self, connection: apsw.Connection) -> Any:
        """Commit, or fail."""
        fault, self._fault = self._fault, ""
        if fault in ("", DISK_FAILS_LATE):
            connection.execute(COMMIT)
        if fault == DISK_FULL:
            raise apsw.FullError("the simulated disk is full")
        if fault:
            raise apsw.IOError("the simulated disk failed")


class FailingConnection:
    """A connection whose commits go through a disk."""

    def __init__(self, connection: apsw.Connection, disk: Disk) -> None:
        self._connection = connection
        self._disk = disk

    def execute(self, statement: str, *bindings: Any) -> Any:
        if statement == COMMIT:
            return self._disk.commit(self._connection)
        return self._connection.execute(statement, *bindings)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)
