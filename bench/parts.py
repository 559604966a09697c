"""Throughput, latency and idleness of one system beside another."""

import time
from dataclasses import dataclass

from bench import raw_postgres
from bench.contestants import OURS, Contestant
from bench.costs import Costs
from bench.figures import Figures
from bench.raw_postgres import middle_and_tail
from bench.servers import Postgres, Redis
from bench.systems.commands import CALLERS
from bench.trial import trial

RAW = "raw"
ONE, TOGETHER, BULK = "submit one by one", "submit 32 at once", "submit bulk by 1,000"
INSERT_ONE, INSERT_MANY, RAW_DRAIN = "insert by 1", "insert by 100", "claim and complete by 100"
DRAIN, DRAIN_TWO = "drain, 1 process", "drain, 2 processes"
START_MEDIAN, START_TAIL = "submit to start p50 ms", "submit to start p99 ms"
RESULT_MEDIAN, RESULT_TAIL = "submit to result p50 ms", "submit to result p99 ms"
MEMORY, MEMORY_BUSY = "worker's memory idle MB", "worker's memory after a drain MB"
CONNECTIONS, CONNECTIONS_BUSY = "connections idle", "connections busy"
IDLE_CPU, IDLE_STATEMENTS, IDLE_CONTROL = "idle CPU % of a core", "idle statements a minute", "idle control a minute"
STATEMENTS, CONTROL = "statements per 100 tasks drained", "BEGIN, COMMIT and SET per 100 tasks drained"
WAL, SYNCS = "bytes of WAL per task drained", "syncs of WAL per 100 tasks drained"
SUBMIT_WAL = "bytes of WAL per task submitted in bulk"
PEERS_IDLE_SECONDS = 15.0
WARM_SECONDS = 2.0
WARM_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything."""

    scale: float
    samples: int
    idle_seconds: float

    def of(self, tasks: int) -> int:
        """So many tasks at this scale, a multiple of the callers."""
        return max(CALLERS, round(tasks * self.scale) // CALLERS * CALLERS)


def name_of(system: str, size: int) -> str:
    """What the figures of a system with payloads of a size go by."""
    return system if size == 50 else f"{system}, {size} B"


def raw_throughput(server: Postgres, figures: Figures, sizes: Sizes, size: int) -> None:
    """The limits of the server."""
    url, name, payload = server.fresh("raw"), name_of(RAW, size), b"x" * size
    figures.add(name, INSERT_ONE, raw_postgres.insert(url, sizes.of(2_000), 1, payload))
    figures.add(name, INSERT_MANY, raw_postgres.insert(url, sizes.of(32_000) // 100 * 100, 100, payload))
    figures.add(name, RAW_DRAIN, raw_postgres.drain(url, max(1_000, sizes.of(32_000) // 1_000 * 1_000), 100, payload))
    server.drop(url)


def submits(contestant: Contestant, server: Postgres | Redis, figures: Figures, sizes: Sizes, size: int) -> None:
    """What a system takes from callers. Raises `Stalled`."""
    name = name_of(contestant.name, size)
    ways = [(ONE, "one", contestant.one), (TOGETHER, "together", contestant.together)]
    if contestant.bulk:
        ways.append((BULK, "bulk", contestant.bulk))
    with trial(contestant, server) as each:
        for figure, command, wanted in ways:
            tasks = sizes.of(wanted)
            costs = Costs(server, each.url) if isinstance(server, Postgres) else None
            figures.add(name, figure, tasks / each.call(command, tasks, size))
            if costs is not None and command == "bulk":
                figures.add(name, SUBMIT_WAL, costs.so_far().wal_bytes / tasks)


def drain(
    contestant: Contestant, server: Postgres | Redis, figures: Figures, sizes: Sizes, size: int, workers: int
) -> None:
    """What the workers of a system get done, and what that costs the server. Raises `Stalled`."""
    name, tasks = name_of(contestant.name, size), sizes.of(contestant.drain)
    with trial(contestant, server) as each:
        each.fill(tasks, size)
        tasks = each.pending()
        each.analyze()
        costs = Costs(server, each.url) if isinstance(server, Postgres) else None
        figures.add(name, DRAIN if workers == 1 else DRAIN_TWO, each.drain(tasks, workers))
        if costs is not None and workers == 1:
            cost = costs.so_far()
            figures.add(name, STATEMENTS, cost.statements / tasks * 100)
            figures.add(name, CONTROL, cost.control / tasks * 100)
            figures.add(name, WAL, cost.wal_bytes / tasks)
            if size == 50:
                figures.statements[f"A drain of {name}, per 100 tasks"] = cost.rows(100, tasks)
            # A session tells of its syncs when it ends.
            each.stop_workers()
            figures.add(name, SYNCS, costs.so_far().syncs / tasks * 100)


def raw_latency(server: Postgres, figures: Figures, sizes: Sizes) -> None:
    """The limit of the server."""
    url = server.fresh("raw")
    middle, tail = raw_postgres.latency(url, sizes.samples)
    figures.add(RAW, START_MEDIAN, middle)
    figures.add(RAW, START_TAIL, tail)
    server.drop(url)


def latency(contestant: Contestant, server: Postgres | Redis, figures: Figures, sizes: Sizes) -> None:
    """From a submit to the beginning of its handler in another process that was idle. Raises `Stalled`."""
    with trial(contestant, server) as each:
        each.worker().go()
        time.sleep(WARM_SECONDS)
        each.call("probe", sizes.samples + WARM_SAMPLES)
        middle, tail = middle_and_tail(each.probes.waits()[WARM_SAMPLES:])
        figures.add(contestant.name, START_MEDIAN, middle)
        figures.add(contestant.name, START_TAIL, tail)
        if contestant is OURS:
            middle, tail = middle_and_tail(each.call("results", sizes.samples + WARM_SAMPLES)[WARM_SAMPLES:])
            figures.add(contestant.name, RESULT_MEDIAN, middle)
            figures.add(contestant.name, RESULT_TAIL, tail)


def idle(contestant: Contestant, server: Postgres | Redis, figures: Figures, sizes: Sizes) -> None:
    """What a worker costs that has nothing to do, and what it has grown to after a drain. Raises `Stalled`."""
    name, tasks = contestant.name, sizes.of(contestant.drain)
    with trial(contestant, server) as each:
        worker = each.worker()
        worker.go()
        time.sleep(WARM_SECONDS)
        each.call("one", 1, 50)
        each.until_ticks(2)
        time.sleep(WARM_SECONDS)
        figures.add(name, MEMORY, worker.megabytes())
        figures.add(name, CONNECTIONS, each.server.connections(each.url))
        costs = Costs(server, each.url) if isinstance(server, Postgres) else None
        begin, cpu = time.monotonic(), worker.cpu_seconds()
        time.sleep(sizes.idle_seconds if contestant is OURS else min(PEERS_IDLE_SECONDS, sizes.idle_seconds))
        minutes = (time.monotonic() - begin) / 60
        figures.add(name, IDLE_CPU, (worker.cpu_seconds() - cpu) / minutes / 60 * 100)
        if costs is not None:
            cost = costs.so_far()
            figures.add(name, IDLE_STATEMENTS, cost.statements / minutes)
            figures.add(name, IDLE_CONTROL, cost.control / minutes)
            figures.statements[f"An idle worker of {name}, per minute"] = cost.rows(1, minutes)
        each.fill(tasks, 50)
        each.until_ticks(tasks)
        figures.add(name, CONNECTIONS_BUSY, each.server.connections(each.url))
        each.until_settled()
        figures.add(name, MEMORY_BUSY, worker.megabytes())
