"""What a queue is put through: many queued, an old snapshot, work that the worker may not have, a kill."""

import asyncio
import contextlib
import time
from collections import Counter

import perdure
from bench.contestants import OURS, Contestant
from bench.figures import Figures
from bench.parts import Sizes
from bench.servers import Postgres
from bench.systems.ours import KINDS, ORGANIZATIONS
from bench.trial import Trial, Worker, trial

FEW, MANY = "drain with 1,000 queued", "drain with many queued"
MILLION = "drain with a million queued"
FRESH, CHURNED = "drain under an old snapshot, first", "drain under an old snapshot, last"
MEMORY_FRESH, MEMORY_CHURNED = "worker's memory before the churn MB", "worker's memory after the churn MB"
LATE = "start of a task committed late, seconds"
WITHOUT, FORBIDDEN = "drain beside nothing", "drain beside many of foreign kinds"
MIXTURE = "drain of some kinds of some organizations"
SINGLE, FAN_OUT, FAN_IN = "microseconds per single task", "per task of a fan-out", "per task of a fan-in"
UNFAIR = "8 worker processes, farthest from an even share, %"
RUNS = 5
MILLION_TASKS, MILLION_RUN = 1_000_000, 20_000
WIDTH = 10_000
KILLS = 3
CROWD, CROWD_TASKS = 8, 40_000
FORBIDDEN_TASKS = 200_000
OWN_TASKS = 20_000
MIXTURE_EACH = 20
KILL_TASKS = 20_000


def _rate(ticks: list[int]) -> float:
    return (len(ticks) - 1) / ((ticks[-1] - ticks[0]) / 1e9)


def backlog(contestant: Contestant, server: Postgres, figures: Figures, sizes: Sizes) -> None:
    """Tasks a second of a worker that has warmed up, with few and with many queued. Raises `Stalled`."""
    queued = sizes.of(contestant.backlog or 0)
    with trial(contestant, server) as each:
        each.worker().go()
        for run in range(RUNS + 1):
            each.probes.clear_ticks()
            each.fill(1_000, 50)
            each.until_ticks(1_000)
            each.until_settled()
            if run:
                figures.add(contestant.name, FEW, _rate(each.probes.ticks()))
    with trial(contestant, server) as each:
        each.fill(queued, 50)
        for run in range(RUNS):
            if run == 1:
                each.analyze()
            figures.add(contestant.name, MANY, _of_many(each, queued // (2 * RUNS)))


def million(server: Postgres, figures: Figures, sizes: Sizes) -> None:
    """Tasks a second with a million queued, in several runs. Raises `Stalled`."""
    with trial(OURS, server) as each:
        each.fill(sizes.of(MILLION_TASKS), 50)
        each.analyze()
        for _ in range(RUNS):
            figures.add(OURS.name, MILLION, _of_many(each, sizes.of(MILLION_RUN)))


def _of_many(each: Trial, tasks: int) -> float:
    """The rate of a worker on its way, without its first tenth."""
    each.probes.clear()
    each.worker().go()
    each.until_ticks(tasks)
    ticks = each.probes.ticks()
    each.stop_workers()
    return _rate(ticks[tasks // 10 : tasks])


def snapshot(contestant: Contestant, server: Postgres, figures: Figures, sizes: Sizes) -> None:
    """The first and the last of many tasks that are drained while a reader holds an old snapshot. Raises `Stalled`."""
    churn = sizes.of(contestant.churn or 0)
    with trial(contestant, server) as each, server.look(each.url) as reader:
        late = _begin_late(each, figures) if contestant is OURS else None
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT count(*) FROM pg_class")
        each.fill(churn, 50)
        worker = each.worker()
        worker.go()
        before = 0.0
        each.until_ticks(churn // 24)
        before = worker.megabytes()
        each.until_ticks(churn)
        ticks, window = each.probes.ticks(), churn // 24
        figures.add(contestant.name, FRESH, _rate(ticks[window : 2 * window]))
        figures.add(contestant.name, CHURNED, _rate(ticks[churn - window : churn]))
        figures.add(contestant.name, MEMORY_FRESH, before)
        figures.add(contestant.name, MEMORY_CHURNED, worker.megabytes())
        if late is not None:
            _end_late(each, late, figures)
        reader.execute("ROLLBACK")


def _begin_late(each: Trial, figures: Figures) -> Worker | None:
    """A caller whose own transaction has submitted a task, and does not commit yet."""
    late = each.worker("work_late")
    late.go()
    with contextlib.suppress(Exception):
        each.until(lambda: each.probes.marks() == [0], each.probes.waited)
        return late
    figures.failures.append("a submit within a caller's own transaction: it is not taken")
    return None


def _end_late(each: Trial, late: Worker, figures: Figures) -> None:
    each.until_settled(left=1)
    late.go()
    each.until(lambda: each.probes.waited() == 1, each.probes.waited)
    [_, committed_ns] = each.probes.marks()
    [begun_ms] = each.probes.waits()
    figures.add(each.contestant.name, LATE, begun_ms / 1e3 - committed_ns / 1e9)


def forbidden(server: Postgres, figures: Figures, sizes: Sizes) -> None:
    """The same work beside nothing else, and beside what nobody here has the kinds for. Raises `Stalled`."""
    tasks, others = sizes.of(OWN_TASKS), sizes.of(FORBIDDEN_TASKS)
    for figure, beside in ((WITHOUT, 0), (FORBIDDEN, others), (FORBIDDEN, others), (WITHOUT, 0)):
        with trial(OURS, server) as each:
            if beside:
                for kind in ("foreign-a", "foreign-b"):
                    each.call("fill_kind", kind, beside // 2)
            queued = each.pending()
            each.fill(tasks, 50)
            each.analyze()
            figures.add(OURS.name, figure, each.drain(tasks, 1, left=queued))


def mixture(server: Postgres, figures: Figures, sizes: Sizes) -> list[str]:
    """A worker that may have half of the kinds of half of the organizations, and gets all of those and no other.
    Raises `Stalled`.
    """
    each_lane = max(2, round(MIXTURE_EACH * sizes.scale))
    kinds, organizations = KINDS // 2, ORGANIZATIONS // 2
    allowed = {
        (organization * KINDS + kind) * each_lane + number
        for organization in range(organizations)
        for kind in range(kinds)
        for number in range(each_lane)
    }
    with trial(OURS, server) as each:
        each.call("fill_mixture", each_lane)
        queued = each.pending()
        each.analyze()
        each.worker("work_some", kinds, organizations).go()
        each.until_ticks(len(allowed))
        ended = each.until_settled(left=queued - len(allowed))
        figures.add(OURS.name, MIXTURE, len(allowed) / ((ended - each.probes.ticks()[0]) / 1e9))
        time.sleep(0.5)
        ran = Counter(each.probes.marks())
    return [
        f"queued, {KINDS} kinds x {ORGANIZATIONS} organizations: {queued:,}",
        f"the worker may have, {kinds} kinds x {organizations} organizations: {len(allowed):,}",
        f"of those never run: {len(allowed - ran.keys())}; run twice: {sum(ran[each] > 1 for each in ran)}",
        f"run and not its to have: {len(ran.keys() - allowed)}",
    ]


def shapes(server: Postgres, figures: Figures, sizes: Sizes) -> None:
    """Microseconds of each task from submit to end: alone, following one, followed by one. Raises `Stalled`."""
    width = sizes.of(WIDTH)
    for figure, shape in ((SINGLE, "single"), (FAN_OUT, "out"), (FAN_IN, "in")):
        with trial(OURS, server) as each:
            figures.add(OURS.name, figure, each.call("shape", shape, width) / width * 1e6)


def crowd(server: Postgres, figures: Figures, sizes: Sizes) -> list[str]:
    """Several workers on one queue: what each gets of it, and who is refused. Raises `Stalled`."""
    tasks = sizes.of(CROWD_TASKS)
    with trial(OURS, server) as each:
        each.call("fill_kind", "who", tasks)
        each.analyze()
        workers = [each.worker() for _ in range(CROWD)]
        for worker in workers:
            worker.go()
        _until_marks(each, tasks)
        each.until_settled()
        shares = Counter(each.probes.marks())
        [(deadlocks,)] = server.admin.execute(
            "SELECT deadlocks FROM pg_stat_database WHERE datname = %s", [each.url.rpartition("/")[2]]
        )
        said = sorted(set(each.said().splitlines()))
    even = tasks / CROWD
    figures.add(OURS.name, UNFAIR, max(abs(shares[worker.process.pid] - even) / even * 100 for worker in workers))
    return [
        f"tasks: {tasks:,}; runs: {shares.total():,}",
        f"runs of each of the {CROWD} workers: " + ", ".join(f"{count:,}" for _, count in shares.most_common()),
        f"deadlocks: {deadlocks}; what workers logged: {'; '.join(said[:3]) or 'nothing'}",
    ]


def kill(server: Postgres, sizes: Sizes) -> tuple[list[str], bool]:
    """Kill workers on the way, one after the other; the last goes on; every task is recounted. Raises `Stalled`."""
    tasks = sizes.of(KILL_TASKS)
    begun: list[int] = []
    with trial(OURS, server) as each:
        each.call("fill_kind", "mark", tasks)
        for number in range(1, KILLS + 1):
            worker = each.worker()
            worker.go()
            _until_marks(each, tasks * number // (KILLS + 1))
            worker.kill()
            begun.append(each.probes.count("marks"))
        killed = time.monotonic()
        each.worker().go()
        _until_marks(each, tasks)
        each.until_settled()
        recovered = time.monotonic() - killed
        succeeded = asyncio.run(_succeeded(each.url))
        ran = Counter(each.probes.marks())
    good = succeeded == tasks and len(ran) == tasks
    return [
        f"tasks: {tasks:,}; runs when each worker was killed: {', '.join(f'{count:,}' for count in begun)}",
        f"succeeded: {succeeded:,}; never run: {tasks - len(ran)}; run twice: {sum(ran[each] > 1 for each in ran)}",
        f"seconds from the last kill to the last settlement: {recovered:.1f} (leases of 5 s)",
    ], good


def _until_marks(each: Trial, count: int) -> None:
    each.until(lambda: each.probes.count("marks") >= count, lambda: each.probes.count("marks"))


async def _succeeded(url: str) -> int:
    async with perdure.App(url) as app:
        overview = await (await app.operations()).views.overview("default")
    return sum(row.tasks for row in overview.counts if row.state == "succeeded")
