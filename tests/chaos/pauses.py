"""Cases in which a worker stands still, or its clock is wrong, and it goes on as if nothing had been."""

import asyncio
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import perdure
from chaos import faults
from chaos.arena import Arena
from chaos.crew import Member

LEASE = 5.0
LATER = perdure.Retry(5, backoff="fixed", base=600.0, jitter=0.0)
LISTEN_SECONDS = 1.0
"""How long a zombie gets to do harm after it has woken up."""


@dataclass
class Zombie:
    """A worker that is stopped while it runs one task, of a queue that others serve too."""

    name: str
    ways: list[str]
    seconds: list[float]
    unfenced: bool = True
    task: str = ""
    worker: Member | None = None
    options: dict[str, Any] = field(default_factory=dict)


async def _raise(arena: Arena, zombie: Zombie, number: int) -> None:
    handle = await arena.app.submit(
        "turns",
        payload={"number": number, "seconds": zombie.seconds, "ways": zombie.ways},
        queue=zombie.name,
        lease=LEASE,
        **zombie.options,
    )
    arena.log.answered(zombie.name, id=handle.id)
    zombie.task = handle.id
    environ = {faults.UNFENCED: "1"} if zombie.unfenced else {}
    zombie.worker = arena.crew.worker(
        queues=[zombie.name], concurrency=1, prefetch=0, duties=False, environ=environ, poll=60.0
    )


async def _stop_all(arena: Arena, zombies: list[Zombie]) -> Member:
    """All of them stopped in the middle of their task; a healthy worker serves their queues."""
    await asyncio.gather(*(_raise(arena, zombie, number) for number, zombie in enumerate(zombies)))
    await arena.until(lambda: arena.effects.count("start") >= len(zombies), 60, "every zombie holds its task")
    for zombie in zombies:
        assert zombie.worker is not None
        await asyncio.to_thread(zombie.worker.pause)
    return arena.crew.worker(queues=[each.name for each in zombies])


def _runs(arena: Arena, zombie: Zombie, what: str = "start") -> int:
    return len(arena.effects.by_task(what)[zombie.task])


async def wakes_during_the_second_attempt(arena: Arena) -> None:
    """The zombie's handler ends while another worker runs the second attempt."""
    zombies = [
        Zombie("honest", ["ok", "ok"], [1.5, 4.0], unfenced=False),
        Zombie("unfenced", ["ok", "ok"], [1.5, 4.0]),
        Zombie("failing", ["fail", "ok"], [1.5, 4.0]),
    ]
    healthy = await _stop_all(arena, zombies)
    began = time.monotonic()
    for zombie in zombies:
        if await arena.until(lambda zombie=zombie: _runs(arena, zombie) == 2, 60, f"{zombie.name}: a second attempt"):
            assert zombie.worker is not None
            zombie.worker.resume()
    await arena.all_ended(60)
    arena.recovered(time.monotonic() - began, LEASE + 10)
    for zombie in zombies:
        await _ended_by_the_second(arena, zombie)
    healthy.end()
    arena.figure(zombies=len(zombies), late_ends=sum(_runs(arena, each, "end") - 1 for each in zombies))
    await arena.judge()


async def _ended_by_the_second(arena: Arena, zombie: Zombie) -> None:
    assert zombie.worker is not None
    views = await arena.views()
    view = await views.task("default", zombie.task)
    attempts = await views.attempts("default", zombie.task)
    states = [str(each.state) for each in attempts]
    arena.check(states == ["lost", "succeeded"], f"{zombie.name}: attempts are {states}")
    assert view is not None
    result = None if view.result is None else view.result.data
    arena.check(result == b'"turn 1"', f"{zombie.name}: the result is {result!r}, not the second attempt's")
    arena.check(_runs(arena, zombie) == 2, f"{zombie.name}: {_runs(arena, zombie)} runs")
    if zombie.unfenced:
        arena.check(_runs(arena, zombie, "end") == 2, f"{zombie.name}: the zombie did not come to its end")
        late = any(each.type == "late_result" for each in await views.events("default", zombie.task))
        arena.check(late or zombie.ways[0] != "ok", f"{zombie.name}: the late result left no note")


async def wakes_after_the_end(arena: Arena) -> None:
    """The zombie's handler ends after the task has: succeeded, cancelled, retrying, redriven."""
    zombies = [
        Zombie("succeeded", ["ok", "ok"], [1.5, 0.0]),
        Zombie("cancelled", ["ok", "ok"], [1.5, 0.0]),
        Zombie("dead", ["ok", "fail"], [1.5, 0.0]),
    ]
    if not arena.quick:
        zombies += [
            Zombie("redriven", ["ok", "fail", "ok"], [1.5, 0.0, 0.0]),
            Zombie("reporting", ["report", "ok"], [1.5, 0.0]),
            Zombie("retrying", ["ok", "fail later", "ok"], [1.5, 0.0, 0.0], options={"retry": LATER}),
        ]
    healthy = await _stop_all(arena, zombies)
    by_name = {each.name: each for each in zombies}
    began = time.monotonic()
    await arena.app.handle(by_name["cancelled"].task).cancel("changed my mind")
    await _all_but_one_ended(arena, by_name.get("retrying"))
    arena.recovered(time.monotonic() - began, LEASE + 10)
    if "redriven" in by_name:
        await (await arena.app.operations()).redrive([by_name["redriven"].task], arena.app.principal)
        await _all_but_one_ended(arena, by_name["retrying"])
    ended = {zombie.name: _runs(arena, zombie, "end") for zombie in zombies}
    before = await _rows_of_tasks(arena)
    for zombie in zombies:
        assert zombie.worker is not None
        zombie.worker.resume()
    for zombie in zombies:
        expected = _runs(arena, zombie)
        await arena.until(
            lambda zombie=zombie, expected=expected: _runs(arena, zombie, "end") >= expected,
            20,
            f"{zombie.name} woke up",
        )
    await asyncio.sleep(LISTEN_SECONDS)
    after = await _rows_of_tasks(arena)
    changed = [table for table in before if before[table] != after[table]]
    arena.check(not changed, f"zombies changed {changed}")
    if "reporting" in by_name:
        arena.check(_runs(arena, by_name["reporting"], "refused") == 1, "the late report was not refused")
        healthy.kill()
        await _end_what_waits(arena, by_name["retrying"])
    states = {zombie.name: await arena.state(zombie.task) for zombie in zombies}
    wanted = {"cancelled": "cancelled", "retrying": "cancelled", "dead": ("failed", "dead_lettered")}
    for name, state in states.items():
        want = wanted.get(name, "succeeded")
        arena.check(state in want, f"{name} is {state}")
    healthy.kill()
    arena.figure(zombies=len(zombies), woke=sum(_runs(arena, each, "end") - ended[each.name] for each in zombies))
    await arena.judge()


async def _all_but_one_ended(arena: Arena, waiting: Zombie | None) -> None:
    """All tasks ended, except for the one that waits for its next attempt."""
    if waiting is None:
        await arena.all_ended(60)
        return

    async def quiet() -> bool:
        return await arena.open_tasks() == 1 and await arena.state(waiting.task) == "retrying"

    await arena.until_async(quiet, 60, "all ended but the one that waits")


async def _end_what_waits(arena: Arena, zombie: Zombie) -> None:
    arena.check(await arena.state(zombie.task) == "retrying", "the zombie moved the task that waits")
    await arena.app.handle(zombie.task).cancel()


async def _rows_of_tasks(arena: Arena) -> dict[str, list[Any]]:
    """Every table about tasks and jobs as it is; notes of late results, workers and time are not part of that."""
    everything = await asyncio.to_thread(arena.ground.snapshot)
    moving = ("workers", "meta", "events", "duties")
    return {name: rows for name, rows in everything.items() if not name.endswith(moving)}


async def gil_held(arena: Arena) -> None:
    """A handler in C holds the GIL for four leases: nobody renews, the task runs elsewhere, the first is fenced."""
    leases = 1.8 if arena.quick else 4.0
    zombie = Zombie("grip", ["grip", "ok"], [leases * LEASE, 0.2], unfenced=False)
    await _raise(arena, zombie, 1)
    await arena.until(lambda: _runs(arena, zombie) == 1, 60, "the grip holds")
    began = time.monotonic()
    healthy = arena.crew.worker(queues=[zombie.name])
    await arena.all_ended(60)
    arena.recovered(time.monotonic() - began, LEASE + 5)
    arena.check(_runs(arena, zombie, "end") == 1, "the second attempt ended first")
    await arena.until(lambda: _runs(arena, zombie, "end") == 2, leases * LEASE + 20, "the grip is over")
    await asyncio.sleep(LISTEN_SECONDS)
    await _ended_by_the_second(arena, zombie)
    healthy.end()
    assert zombie.worker is not None
    arena.check(zombie.worker.end() == 0, f"the starved worker ended with {zombie.worker.code}")
    arena.figure(held=leases * LEASE)
    await arena.judge()


async def wall_clock_jumps(arena: Arena) -> None:
    """The wall clocks of two workers step by an hour, ahead and back, while they hold tasks longer than a lease."""
    seconds = 7.0 if arena.quick else 12.0
    fake = None if arena.quick else _false_clock(arena)
    ids = await arena.submit("nap", range(20), payload={"seconds": seconds}, lease=LEASE)
    late = await arena.submit("nap", range(100, 110), delay=4.0, lease=LEASE)
    began = time.monotonic()
    environs = [{faults.WALL: "3600@2.5"}, {faults.WALL: "-3600@2.5"}]
    if fake is not None:
        environs.append(fake.environ)
    workers = [arena.crew.worker(environ=each, concurrency=12, prefetch=0) for each in environs]
    await arena.until(lambda: arena.effects.count("start") >= len(ids), 60, "all naps began")
    if fake is not None:
        for step in ("+3600", "-3600", "+0"):
            fake.set(step)
            await asyncio.sleep(2.0)
    await arena.all_ended(60)
    arena.recovered(time.monotonic() - began, seconds + 8)
    runs = {task: len(found) for task, found in arena.effects.by_task("start").items()}
    twice = [task for task, count in runs.items() if count > 1]
    arena.check(not twice, f"{len(twice)} tasks ran more than once: somebody believed the wrong clock")
    arena.check(set(runs) == {*ids, *late}, "not every task ran")
    first = min((each.at for each in arena.effects.read("start") if each.number >= 100), default=0.0)
    arena.check(first - began >= 3.9, f"a delayed task began {first - began:.2f} s after its submit, not 4 s")
    told = (
        "" if arena.quick else "faked by libfaketime, too" if fake is not None else "not faked: needs Debian's faketime"
    )
    arena.figure(tasks=len(runs), first_delayed_after=first - began, **({"clock": told} if told else {}))
    for worker in workers:
        worker.end()
    await arena.judge()


class _FalseClock:
    """A wall clock that the operating system itself tells wrongly; the file says by how much."""

    def __init__(self, library: Path, file: Path) -> None:
        self._file = file
        self.set("+0")
        self.environ = {
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, seconds: str) -> None:
        """Step to so many seconds from the truth."""
        self._file.write_text(f"{seconds}\n")


def _false_clock(arena: Arena) -> _FalseClock | None:
    """With libfaketime where it is installed."""
    for library in Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"):
        return _FalseClock(library, arena.folder / "false-clock")
    return None


async def renews_for_ever(arena: Arena) -> None:
    """A handler that does not stop, on a worker that renews it past its deadline: the deadline ends it."""
    limit = 2.0
    handle = await arena.app.submit(
        "stubborn", payload={"number": 1, "seconds": 5.0}, execution_limit=limit, lease=LEASE, max_attempts=1
    )
    arena.log.answered("stubborn", id=handle.id)
    worker = arena.crew.worker(environ={faults.UNFENCED: "1"}, stop_grace=0.0, grace=0.0)
    await arena.until(lambda: arena.effects.count("start") == 1, 60, "it runs")
    began = time.monotonic()
    await arena.all_ended(30)
    took = time.monotonic() - began
    arena.recovered(took, limit + 5)
    view = await handle.status()
    arena.check(view.reason == "deadline", f"it ended {view.state} ({view.reason})")
    await arena.until(lambda: arena.effects.count("end") == 1, 30, "the handler came to its end")
    await asyncio.sleep(LISTEN_SECONDS)
    again = await handle.status()
    arena.check(again.state == view.state and again.result is None, f"afterwards it is {again.state}")
    arena.check(arena.effects.count("start") == 1, "it ran again")
    worker.kill()
    arena.figure(ended_after=took)
    await arena.judge()
