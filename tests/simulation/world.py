"""One simulated run: a machine, its processes, their faults, and after a while their healing."""

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable
from contextvars import Context
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from perdure.ambient import Chance, Ids
from perdure.engine.engine import Engine
from perdure.engine.engine_settings import EngineSettings
from perdure.engine.requests import Principal
from perdure.errors import PerdureError, Unavailable
from perdure.store.sqlite.store import SqliteStore
from perdure.store.wakeups import Topic
from perdure.worker.context import Context as HandlerContext
from perdure.worker.loop import Worker
from perdure.worker.worker_settings import WorkerSettings
from simulation import policies, workload
from simulation.clients import Client, ClientLog
from simulation.clocks import Machine, ProcessClock
from simulation.coverage import VERBS, Coverage
from simulation.faults import READS, Carried, Disk, FaultPlan, Network
from simulation.observer import Observer
from simulation.processes import RUNNING_AS, Process
from simulation.requesting import ByRequest
from simulation.standing import WithStanding
from simulation.witness import Witness

WORKER = Principal("worker")
NETWORK = "network"
"""Who brings what arrives late."""
LEDGER_VERBS = frozenset(VERBS)
DEFINITION_VERBS = frozenset({"put"})
SCHEDULE_VERBS = frozenset({"fire"})
NOBODY = Context()
"""The context of what belongs to no process."""
CHANGES_NO_TASK = frozenset({"put", "order", "cancel_job", "trip_breaker", "reset_breaker"})
"""What others should hear of though no task moves."""
BY_REQUEST_EVERY = 4
"""In one life of so many, workers claim as behind a gateway."""
SETTINGS = EngineSettings(cancel_grace=5.0, unroutable_after=40.0, worker_active=30.0, lease=10.0)


class Wired(NamedTuple):
    """A store whose ledger is reached through the network."""

    capabilities: Any
    ledger: Any
    views: Any
    definitions: Any
    schedules: Any
    schema: Any
    wakeups: Any
    caller: Any


class Node:
    """What a process has open."""

    def __init__(self, process: Process, clock: ProcessClock, store: SqliteStore, engine: Engine, ledger: Any) -> None:
        self.process = process
        self.clock = clock
        self.store = store
        self.engine = engine
        self.ledger = ledger
        self.disk = Disk()
        self.disk.attach(store.writer.commits)
        self.hint_under_way = False


class World:
    """All that exists in one run. `log` is the same for the same seed."""

    def __init__(self, seed: int, path: Path) -> None:
        self.seed = seed
        self.path = path
        self.coverage = Coverage()
        self.observer = Observer(self.path)
        self.witness = Witness(self.observer, self.coverage)
        self.log_of_clients = ClientLog()
        self.workers: set[str] = set()
        self.events: list[tuple[int, str, str, str]] = []
        self.nodes: dict[str, Node] = {}
        self.graves: list[Process] = []
        self.runs: dict[str, int] = {}
        self.first_instants: dict[str, int] = {}
        """Of each schedule."""
        self.kinds = workload.registry(self)
        """The same handlers for all workers: each knows in which process it runs."""
        self.over = False
        loop = asyncio.get_running_loop()
        self.machine = Machine(loop)
        plan = FaultPlan.drawn(self.chance("plan"))
        self.network = Network(self, plan, self.chance("network"), self.coverage)
        self._numbers: dict[str, int] = {}
        self.behind: SqliteStore | None = None
        """The store that late repeats arrive at, and that judges at the end."""
        self.running: list[Process] = []
        self.keepers: list[str] = []
        self.draining: dict[str, Worker] = {}
        self.until = 0.0
        self.late_until = 0.0
        """When the last repeat that is under way arrives."""

    def chance(self, name: str) -> random.Random:
        """A source of chance of its own for each purpose."""
        return random.Random(f"{self.seed} {name}")

    def log(self, who: str, what: str, detail: str = "") -> None:
        """Note an event."""
        self.events.append((self.machine.real_us(), who, what, detail))

    @property
    def healthy(self) -> bool:
        """Whether faults have stopped."""
        return self.network.calm

    # Processes

    async def open_behind(self) -> None:
        """Open the store that late repeats arrive at; opened anew after a restart of the machine."""
        self.behind = await SqliteStore.open(
            self.path, clock=ProcessClock(self.machine), inline=True, synchronous="OFF"
        )
        self.witness.flow.forget(NETWORK)

    async def node(self, process: Process, clock: ProcessClock) -> Node:
        """Open the store for a process, and its engine."""
        store = await SqliteStore.open(self.path, clock=clock, inline=True, synchronous="OFF")
        ledger = WithStanding(Carried(self.network, process, store.ledger, LEDGER_VERBS), store.ledger, self.witness)
        wired = Wired(
            store.capabilities,
            ledger,
            store.views,
            Carried(self.network, process, store.definitions, DEFINITION_VERBS),
            Carried(self.network, process, store.schedules, SCHEDULE_VERBS),
            store.schema,
            store.wakeups,
            store.caller,
        )
        chance = Chance(self.chance(process.name).getrandbits(32))
        engine = Engine(wired, clock=clock, ids=Ids(clock, chance.bits), chance=chance, settings=SETTINGS)
        node = Node(process, clock, store, engine, ledger)
        self.nodes[process.name] = node
        return node

    async def restart_machine(self) -> None:
        """The boot clock begins anew; whoever runs was killed before."""
        assert self.behind is not None
        await self.behind.close()
        self.machine.restart()
        await self.open_behind()

    async def declare(self) -> None:
        """Say what holds in this life from the beginning on."""
        await policies.declare(self.operators, self.kinds.definitions())

    async def resume(self) -> None:
        """Let everything be claimed, as an operator would."""
        await policies.resume(self.operators)

    @property
    def operators(self) -> Engine:
        """An engine of operators whose calls never fail."""
        assert self.behind is not None
        clock = ProcessClock(self.machine)
        drawn = Chance(0)
        store: Any = self.behind
        return Engine(store, clock=clock, ids=Ids(clock, drawn.bits), chance=drawn)

    async def close(self) -> None:
        """Let go of the database."""
        for node in self.nodes.values():
            await node.store.close()
        if self.behind is not None:
            await self.behind.close()
        self.observer.close()

    def begin(self, role: str, main: Callable[[Process], Any]) -> Process:
        """Start a process."""
        number = self._numbers[role] = self._numbers.get(role, 0) + 1
        process = Process(f"{role}-{number}")
        self.log(process.name, "begins")
        process.run(main(process))
        return process

    def crash(self, process: Process, where: str) -> None:
        """Kill a process: what it had in memory is gone."""
        if process.dead:
            return
        self.log(process.name, "dies", where)
        process.kill()
        self.graves.append(process)
        node = self.nodes.pop(process.name, None)
        if node is not None:
            node.store.readers._closed = node.store.writer._closed = True  # type: ignore[attr-defined]
            node.store.writer.commits.close()

    async def worker(self, process: Process) -> None:
        """A process with a worker, and often with duties."""
        chance = self.chance(f"{process.name} settings")
        node = await self.node(process, ProcessClock(self.machine, self._rate(chance)))
        duties = node.engine.duty_runner()
        if chance.random() < 0.5:
            duties.start()
        kinds = self.kinds
        await self._declare(node, kinds)
        settings = WorkerSettings(
            concurrency=chance.choice((1, 2, 4)),
            prefetch=chance.choice((None, 0, 4)),
            queues=policies.QUEUES,
            grace=chance.choice((0.0, 2.0)),
            stop_grace=2.0,
            control_interval=chance.choice((0.5, 2.0)),
            heartbeat=5.0,
            keeper_thread=False,
            name=process.name,
        )
        seeded = Chance(chance.getrandbits(32))
        ids = Ids(node.clock, seeded.bits)
        source: Any = node.engine if self.seed % BY_REQUEST_EVERY else ByRequest(node.engine, ids)
        worker = Worker(
            source,
            kinds,
            clock=node.clock,
            ids=ids,
            chance=seeded,
            settings=settings,
        )
        self.workers.add(worker.id)
        self.draining[process.name] = worker
        ending = await worker.run()
        self.workers.discard(worker.id)
        self.log(process.name, "worker ends", str(ending))
        await duties.stop()
        await self._leave(node)

    def _rate(self, chance: random.Random) -> float:
        if self.healthy or chance.random() < 0.75:
            return 1.0
        fast = chance.random() < 0.5
        self.coverage.faults["clock runs fast" if fast else "clock runs slow"] += 1
        return chance.uniform(1.05, 1.5) if fast else chance.uniform(0.7, 0.95)

    async def _declare(self, node: Node, kinds: Any) -> None:
        while True:
            try:
                await node.engine.declare(kinds.definitions(), WORKER)
            except Unavailable:
                await asyncio.sleep(1.0)
            else:
                return

    async def duties(self, process: Process) -> None:
        """A process with duties only."""
        node = await self.node(process, ProcessClock(self.machine))
        async with node.engine.duty_runner():
            await asyncio.Event().wait()

    async def client(self, process: Process, until: float) -> None:
        """A process of a client."""
        node = await self.node(process, ProcessClock(self.machine))
        await Client(self, process, node.engine, self.chance(process.name + " acts")).work(until)
        await self._leave(node)

    async def _leave(self, node: Node) -> None:
        self.nodes.pop(node.process.name, None)
        await node.engine.close()
        await node.store.close()

    # What passes between processes

    async def execute(self, who: str, verb: str, act: Callable[..., Awaitable[Any]], arguments: Any) -> Any:
        """Let a call reach the store. The answer, or the refusal as a value."""
        node = self.nodes.get(who)
        try:
            answer: Any = await act(*arguments)
        except PerdureError as error:
            answer = error
        self.coverage.facts["calls"] += 1
        changed = verb in CHANGES_NO_TASK
        if (verb in LEDGER_VERBS and verb not in READS) or verb in SCHEDULE_VERBS:
            changed |= self.witness.committed(verb, arguments, answer, self.store_us(), who)
        self.log(who, verb, _told(answer))
        if node is not None and changed:
            self._hint_others(node)
        return answer

    def store_us(self) -> int:
        """The store's time."""
        assert self.behind is not None
        clock = self.behind.writer.commits._clock
        return clock.now_us()

    def _hint_others(self, node: Node) -> None:
        loop = asyncio.get_running_loop()
        for other in self.nodes.values():
            if other is node or other.hint_under_way:
                continue
            delay = self.network.hint_passes()
            if delay is not None:
                other.hint_under_way = True
                NOBODY.run(loop.call_later, delay, self._hint, other)

    def _hint(self, node: Node) -> None:
        node.hint_under_way = False
        if not node.process.dead:
            node.store.wakeups.announce(Topic.ANY)

    def later(self, seconds: float, verb: str, arguments: Any) -> None:
        """Let a call arrive a second time, later."""
        loop = asyncio.get_running_loop()
        self.late_until = max(self.late_until, loop.time() + seconds)
        NOBODY.run(loop.call_later, seconds, self._repeat, verb, arguments)

    def _repeat(self, verb: str, arguments: Any) -> None:
        if self.over or self.behind is None:
            return
        inner: Any = self.behind.definitions if verb in DEFINITION_VERBS else self.behind.ledger
        if verb in SCHEDULE_VERBS:
            inner = self.behind.schedules
        repeated = self.execute(NETWORK, verb, getattr(inner, verb), arguments)
        asyncio.get_running_loop().create_task(repeated, context=NOBODY.copy())

    def asking(self, ask: Callable[..., Awaitable[Any]], *arguments: Any) -> Callable[[], Awaitable[Any]]:
        """A call that can be made again."""
        return functools.partial(ask, *arguments)

    def ledger_of(self, process: Process) -> Any:
        """The ledger as a process reaches it."""
        return self.nodes[process.name].ledger

    def disk_of(self, process: Process) -> Disk:
        """What a process writes through."""
        node = self.nodes.get(process.name)
        return node.disk if node is not None else Disk()

    def committed_elsewhere(self) -> None:
        """A client has committed a transaction of its own."""
        self.witness.committed("submit_within", (), None, self.store_us())

    # What handlers tell

    def handler_begins(self, ctx: HandlerContext) -> int:
        """A handler starts: how many runs of its task that makes."""
        runs = self.runs[ctx.task_id] = self.runs.get(ctx.task_id, 0) + 1
        process = RUNNING_AS.get()
        self.log(process.name if process else "?", "handler begins", ctx.attempt_id)
        self.coverage.facts["handlers"] += 1
        if not self.witness.knows_attempt(ctx.attempt_id, ctx.task_id):
            self.witness.wrong(f"a handler runs for attempt {ctx.attempt_id}, which was never claimed")
        if not ctx.lease_seconds:
            self.witness.wrong(f"a handler began for attempt {ctx.attempt_id} after its lease by its own clock")
        return runs

    def handler_ends(self, ctx: HandlerContext) -> None:
        """A handler has ended, however."""
        if not self.over:
            self.log("handler", "ends", ctx.attempt_id)

    def receipt_committed(self, ctx: HandlerContext, value: Any) -> None:
        """A handler's own transaction has committed."""
        self.witness.received(ctx._held.hold, msgspec.json.encode(value), self.store_us())


def _told(answer: Any) -> str:
    if isinstance(answer, BaseException):
        return type(answer).__name__
    if isinstance(answer, list):
        return f"{len(answer)}"
    return ""
