"""Cases in which processes die: by a signal, at every point of every call, by their own task, and in good order."""

import asyncio
import signal
import time
from typing import Any

import perdure
from chaos import faults
from chaos.arena import Arena
from chaos.crew import Member

LEASE = 5.0
CLIENT_ROUNDS = 24


async def killed_in_the_middle(arena: Arena) -> None:
    """SIGKILL of a worker's process group in the middle of 200 tasks of 0.2 s."""
    lease = LEASE if arena.quick else 60.0
    ids = await arena.submit("nap", range(200), payload={"seconds": 0.2}, lease=lease)
    first = arena.crew.worker()
    await arena.until(lambda: arena.effects.count("end") >= 60, 60, "60 of 200 tasks done")
    first.kill()
    ended = {each.task for each in arena.effects.read("end")}
    under_way = {each.task for each in arena.effects.read("start")} - ended
    arena.check(under_way, "the kill hit no task")
    began = time.monotonic()
    arena.crew.worker()
    await arena.all_ended(lease + 60)
    arena.recovered(time.monotonic() - began, lease + 5)
    arena.check((await arena.counts())["succeeded"] == len(ids), f"not all succeeded: {dict(await arena.counts())}")
    views = await arena.views()
    for task_id in under_way:
        attempts = await views.attempts("default", task_id)
        types = {each.type for each in await views.events("default", task_id)}
        lost = [each for each in attempts if each.state == "lost"]
        arena.check(
            lost and any("lost" in each for each in types), f"the loss of {task_id} is not in its history: {types}"
        )
    arena.figure(tasks=len(ids), hit=len(under_way), lease=lease)
    await arena.judge()


def crash_points(quick: bool) -> list[tuple[str, str]]:
    """(verb, point) of every crash of a worker; a sample of them in the quick tier."""
    if quick:
        return [
            ("claim", "within"),
            ("claim", "committed"),
            ("report", "committed"),
            ("settle", "before"),
            ("settle", "within"),
            ("settle", "committed"),
            ("settle", "answered"),
        ]
    points = [(verb, point) for verb in faults.WRITES for point in faults.POINTS]
    points += [(verb, point) for verb in faults.DUTIES for point in faults.POINTS]
    return points + [(verb, point) for verb in faults.READS for point in ("before", "answered")]


async def every_crash_point(arena: Arena) -> None:
    """One process after the other dies at its point; the last ones live and do what is left."""
    points = crash_points(arena.quick)
    arena.random.shuffle(points)
    await _clients_die(arena)
    missed: list[str] = []
    for supply, (verb, point) in enumerate(points, 1):
        await _supply(arena, supply)
        nth = 1 if verb in ("register", "leave", *faults.DUTIES) else arena.random.randint(1, 2)
        worker = arena.crew.worker(
            environ={faults.DIE: f"{verb}:{point}:{nth}"},
            concurrency=4,
            heartbeat=0.1,
            control_interval=0.05,
            grace=0.0,
        )
        if verb == "leave":
            await arena.until(lambda worker=worker: _has_begun(arena, worker), 20, "a worker that is to leave works")
        code = await _death(worker, 25.0, drain=verb == "leave")
        if code != faults.DIED:
            missed.append(f"{verb}:{point} (exit code {code})")
    arena.check(not missed, f"crash points that were not reached: {missed}")
    healed = time.monotonic()
    survivors = [arena.crew.worker() for _ in range(2)]
    await arena.all_ended(90)
    arena.recovered(time.monotonic() - healed, LEASE + 45)
    for survivor in survivors:
        arena.check(survivor.end() == 0, f"a healthy worker ended with {survivor.code}")
    arena.figure(points=len(points), tasks=len(await arena.tasks()))
    await arena.judge()


def _has_begun(arena: Arena, worker: Member) -> bool:
    return any(each.pid == worker.pid for each in arena.effects.read("start"))


async def _supply(arena: Arena, supply: int) -> None:
    """New work of every sort, to be claimed before all that earlier workers left."""
    first = 1_000 * supply
    options: dict[str, Any] = {"lease": LEASE, "max_losses": 100, "retry": _quick_retry(5), "priority": 9}
    await arena.submit("busy", range(first, first + 4), **options)
    with arena.app.job(f"supply {supply}") as job:
        top = job.add("nap", number=first, **options)
        job.add("busy", number=first + 4, after=[top], **options)
    arena.log.answered(f"supply-{supply}", id=(await job.submit()).id)
    await arena.submit("nap", range(first + 5, first + 7), delay=0.5, ttl=600, **options)
    # Longer than two thirds of the lease: it is renewed twice.
    await arena.submit("nap", range(first + 10, first + 11), payload={"seconds": 4.0}, **options)


async def _death(worker: Member, seconds: float, *, drain: bool) -> int | None:
    """Wait for the worker's own end: its exit code, `None` when it did not come."""
    until = time.monotonic() + seconds
    if drain:
        await asyncio.sleep(1.0)
        worker.signal(signal.SIGTERM)
    while worker.code is None and time.monotonic() < until:
        await asyncio.sleep(0.02)
    code = worker.code
    worker.kill()
    return code


async def _clients_die(arena: Arena) -> None:
    """Clients that die at each point of each verb and are started again, until one has asked everything."""
    dead = await arena.submit(
        "turns", range(CLIENT_ROUNDS), payload={"seconds": [0.0] * 4, "ways": ["fail", "ok", "ok", "ok"]}, lease=LEASE
    )
    waiting = await arena.submit("nap", range(CLIENT_ROUNDS), delay=3600, lease=LEASE)
    worker = arena.crew.worker()

    async def failed() -> bool:
        counts = await arena.counts()
        return counts["failed"] + counts["dead_lettered"] == len(dead)

    await arena.until_async(failed, 30, "the tasks to redrive failed")
    worker.end()
    verbs = ("submit", "redrive") if arena.quick else faults.CLIENT
    points = ("within", "committed") if arena.quick else faults.POINTS
    for verb in verbs:
        for point in points:
            orders: dict[str, Any] = (
                {"do": "submit", "options": {"lease": LEASE}}
                if verb == "submit"
                else {"do": "operate", "cancel": waiting, "redrive": dead}
            )
            # What an earlier client was told is not asked again, so each death is at a later task.
            await _die_and_go_on(arena, f"{verb}:{point}:{arena.random.randint(1, 2)}", orders)
    for orders in (
        {"do": "submit", "options": {"lease": LEASE}},
        {"do": "operate", "cancel": waiting, "redrive": dead},
    ):
        client = arena.crew.client(arena.log.path, **orders, first=0, count=CLIENT_ROUNDS)
        code = await asyncio.to_thread(client.wait, 60)
        arena.check(code == 0, f"a healthy client ended with {code}")
    arena.check(not arena.log.unknown() - set(arena.log.read("refused")), f"unknown: {sorted(arena.log.unknown())}")


async def _die_and_go_on(arena: Arena, die: str, orders: dict[str, object]) -> None:
    client = arena.crew.client(arena.log.path, environ={faults.DIE: die}, first=0, count=CLIENT_ROUNDS, **orders)
    code = await asyncio.to_thread(client.wait, 60)
    arena.check(code == faults.DIED, f"the client's crash point {die} was not reached (exit code {code})")


async def poison(arena: Arena) -> None:
    """Tasks that kill their worker: exactly as many runs as they may cost, then a dead letter."""
    ways = ("kill", "segfault", "memory")
    ids = {}
    for number, way in enumerate(ways):
        handle = await arena.app.submit(
            "poison",
            payload={"number": number, "way": way},
            queue=way,
            lease=LEASE,
            max_losses=3,
            retry=_quick_retry(3),
        )
        arena.log.answered(way, id=handle.id)
        ids[way] = handle.id
    began = time.monotonic()
    await asyncio.gather(*(_supervise(arena, way, ids[way], began + 90) for way in ways))
    arena.recovery = time.monotonic() - began
    views = await arena.views()
    for way in ways:
        view = await views.task("default", ids[way])
        assert view is not None
        runs = len(arena.effects.by_task("start")[ids[way]])
        arena.figure(**{f"{way} runs": runs})
        arena.check(runs == 3, f"{way}: {runs} runs, not 3")
        reasons = ("worker_lost", "exhausted") if way == "memory" else ("worker_lost",)
        arena.check(
            view.state == "dead_lettered" and view.reason in reasons, f"{way}: ended {view.state} ({view.reason})"
        )
    await arena.judge()


def _quick_retry(attempts: int) -> perdure.Retry:
    return perdure.Retry(attempts, backoff="fixed", base=0.1, jitter=0.0)


async def _supervise(arena: Arena, queue: str, task_id: str, until: float) -> None:
    """Start a worker for the queue again and again, until the task has ended."""
    while time.monotonic() < until:
        worker = arena.crew.worker(queues=[queue], concurrency=1)
        while worker.code is None and time.monotonic() < until:
            if await arena.state(task_id) in ("dead_lettered", "failed", "succeeded", "absent"):
                worker.kill()
                return
            await asyncio.sleep(0.05)
        worker.kill()
    arena.check(False, f"the task of {queue} has not ended: {await arena.state(task_id)}")


async def rolling_deploy(arena: Arena, at: str | None = None) -> None:
    """SIGTERM with 50 tasks in flight and two seconds of grace, a new worker beside it; `at` a gateway if said."""
    grace = 2.0
    seconds = 3.0 if arena.quick else 20.0
    ids = await arena.submit("nap", range(50), payload={"seconds": seconds}, lease=60.0)
    old = arena.crew.worker(concurrency=50, grace=grace, at=at)
    await arena.until(lambda: arena.effects.count("start") == 50, 60, "50 tasks in flight")
    new = arena.crew.worker(concurrency=50, at=at)
    told = time.monotonic()
    old.signal(signal.SIGTERM)
    code = await asyncio.to_thread(old.wait, 60)
    took = time.monotonic() - told
    arena.check(code == 0, f"the drained worker ended with {code}")
    arena.check(
        took <= grace + (2.0 if not arena.quick else 15.0), f"it took {took:.2f} s to drain with {grace} s of grace"
    )
    await arena.all_ended(seconds + 60)
    arena.recovered(time.monotonic() - told, grace + seconds + 5)
    await _no_budget_spent(arena, ids)
    arena.check(new.end() == 0, f"the new worker ended with {new.code}")
    arena.figure(drained_in=took, handed_back=len(arena.effects.read("start")) - 50)
    await arena.judge()


async def told_to_end_in_the_middle(arena: Arena) -> None:
    """SIGTERM in the middle of 200 tasks of 0.2 s: nothing lost, no budget spent, exit within the grace."""
    grace = 5.0
    ids = await arena.submit("nap", range(200), payload={"seconds": 0.2})
    old = arena.crew.worker(grace=grace)
    await arena.until(lambda: arena.effects.count("end") >= 60, 60, "60 of 200 tasks done")
    told = time.monotonic()
    code = await asyncio.to_thread(_end, old)
    took = time.monotonic() - told
    arena.check(code == 0 and took <= grace, f"exit code {code} after {took:.2f} s")
    arena.check(await arena.open_tasks() > 0, "nothing was left for the next worker")
    new = arena.crew.worker()
    await arena.all_ended(60)
    arena.recovered(time.monotonic() - told, 15)
    arena.check(new.end() == 0, f"the new worker ended with {new.code}")
    await _no_budget_spent(arena, ids)
    arena.figure(drained_in=took, runs=arena.effects.count("start"))
    await arena.judge()


def _end(worker: Member) -> int:
    return worker.end()


async def _no_budget_spent(arena: Arena, ids: list[str]) -> None:
    views = await arena.views()
    for task_id in ids:
        view = await views.task("default", task_id)
        assert view is not None
        attempts = await views.attempts("default", task_id)
        spent = [str(each.state) for each in attempts if each.state in ("lost", "failed")]
        fine = view.state == "succeeded" and view.losses == 0 and not spent
        arena.check(fine, f"task {task_id}: {view.state}, {view.losses} losses, attempts {spent}")
