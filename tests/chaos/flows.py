"""Cases about what may run at once: limits of a queue over many workers, some of which die."""

import time

from chaos.arena import Arena
from chaos.crew import Member
from perdure.domain.limits import SECOND_US
from perdure.engine.requests import Principal
from perdure.store.views import AttemptView

WORKERS = 8
CONCURRENCY, RATE, PER = 6, 25, 1.0
LEASE = 5.0


async def limits_under_kills(arena: Arena) -> None:
    """Eight workers on a queue with a concurrency and a rate; again and again one is killed and another one begins."""
    tasks, kills = (200, 5) if arena.quick else (1_500, 40)
    await _limit(arena)
    ids = await arena.submit("nap", range(tasks), payload={"seconds": 0.1}, lease=LEASE)
    workers = [_worker(arena) for _ in range(WORKERS)]
    began = time.monotonic()
    for kill in range(1, kills + 1):
        done = kill * tasks // (kills + 2)
        await arena.until(lambda done=done: arena.effects.count("end") >= done, 120, f"{done} of {tasks} tasks done")
        place = arena.random.randrange(WORKERS)
        workers[place].kill()
        workers[place] = _worker(arena)
    await arena.all_ended(180 if arena.quick else 400)
    took = time.monotonic() - began
    attempts = [each for id in ids for each in await (await arena.views()).attempts("default", id)]
    most, fastest = _most_held(attempts), _most_started(attempts)
    arena.check(most <= CONCURRENCY, f"{most} were held at once, the limit is {CONCURRENCY}")
    arena.check(fastest <= RATE, f"{fastest} started within {PER:g} s, the limit is {RATE}")
    arena.check(most == CONCURRENCY or fastest == RATE, f"no limit was reached: {most} held, {fastest} started")
    for worker in workers:
        arena.check(worker.end() == 0, f"a worker ended with {worker.code}")
    lost = sum(each.state == "lost" for each in attempts)
    arena.figure(tasks=tasks, attempts=len(attempts), lost=lost, held=most, started=fastest, seconds=took)
    await arena.judge()


async def _limit(arena: Arena) -> None:
    document = {"concurrency": CONCURRENCY, "rate": RATE, "per": PER}
    operations = await arena.app.operations()
    await operations.put_definition("queue", "default", document, Principal("chaos"))


def _worker(arena: Arena) -> Member:
    return arena.crew.worker(concurrency=4, prefetch=0)


def _most_held(attempts: list[AttemptView]) -> int:
    """How many attempts were held at one instant, at most: from the claim to the end that the store wrote."""
    moves = [(each.leased_us, 1) for each in attempts] + [(each.ended_us, -1) for each in attempts if each.ended_us]
    held = most = 0
    # What ends at the instant of a claim made room for it.
    for _, change in sorted(moves):
        held += change
        most = max(most, held)
    return most


def _most_started(attempts: list[AttemptView]) -> int:
    """How many attempts were claimed in a stretch of that length, at most."""
    instants = sorted(each.leased_us for each in attempts)
    most = first = 0
    for last, at in enumerate(instants):
        while at - instants[first] >= PER * SECOND_US:
            first += 1
        most = max(most, last - first + 1)
    return most
