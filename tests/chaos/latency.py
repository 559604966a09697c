"""What two processes on one file owe each other: a start soon after the submit, and a delayed task at its time."""

import asyncio
import statistics
import time

from chaos.arena import Arena

P50_SECONDS = 0.015
P99_SECONDS = 0.060
DELAYED_SECONDS = 0.100
LIVENESS_SECONDS = 5.0


async def two_processes(arena: Arena) -> None:
    """Submits here, a worker there: from the call of submit to the handler's first line."""
    probes, delayed = (20, 6) if arena.quick else (400, 60)
    worker = arena.crew.worker(poll=2.0)
    await arena.submit("nap", range(1))
    await arena.all_ended(60)
    taken = await _probe(arena, probes)
    late = await _delayed(arena, delayed)
    p50, p99 = statistics.median(taken), taken[int(len(taken) * 0.99)]
    arena.figure(start_p50_ms=p50 * 1000, start_p99_ms=p99 * 1000, delayed_worst_ms=late[-1] * 1000)
    arena.figure(delayed_p50_ms=statistics.median(late) * 1000)
    if arena.quick:
        arena.check(max(p99, late[-1]) <= LIVENESS_SECONDS, f"p99 {p99:.3f} s, latest {late[-1]:.3f} s")
    else:
        arena.check(p50 < P50_SECONDS and p99 < P99_SECONDS, f"submit to start: p50 {p50:.4f} s, p99 {p99:.4f} s")
        arena.check(late[-1] <= DELAYED_SECONDS, f"the latest delayed task was {late[-1]:.3f} s late")
    arena.check(late[0] >= -0.001, f"a delayed task began {-late[0]:.3f} s too early")
    worker.end()
    await arena.judge()


async def _probe(arena: Arena, count: int) -> list[float]:
    """Seconds from the call of submit to the start, one at a time, at uneven distances; ascending."""
    taken = []
    for number in range(1, count + 1):
        await asyncio.sleep(arena.random.uniform(0.01, 0.2 if arena.quick else 0.4))
        before = time.monotonic()
        handle = await arena.app.submit("probe", payload={"number": number})
        started = await _start_of(arena, handle.id)
        taken.append(started - before)
    return sorted(taken)


async def _delayed(arena: Arena, count: int) -> list[float]:
    """Seconds between the time of each delayed task and its start; ascending."""
    due: dict[str, float] = {}
    asked: dict[str, float] = {}
    for number in range(count):
        delay = arena.random.uniform(0.5, 3.0 if arena.quick else 12.0)
        before = time.monotonic()
        handle = await arena.app.submit("probe", payload={"number": 10_000 + number}, delay=delay)
        asked[handle.id] = before + delay
        due[handle.id] = time.monotonic() + delay
        await asyncio.sleep(0.02)
    starts = {task: await _start_of(arena, task) for task in due}
    early = [starts[task] - asked[task] for task in due if starts[task] < asked[task]]
    return sorted(early + [starts[task] - asked[task] for task in due if starts[task] >= asked[task]])


async def _start_of(arena: Arena, task_id: str) -> float:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        for each in reversed(arena.effects.read("start")):
            if each.task == task_id:
                return each.at
        await asyncio.sleep(0.005)
    arena.check(False, f"task {task_id} did not start within 30 s")
    return time.monotonic()
