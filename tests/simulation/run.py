"""Runs one seed from its beginning to its verdict."""

import asyncio
import gc
import logging
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from perdure.store.sqlite.store import SqliteStore
from simulation import schedules
from simulation.checks import wrong_at_the_end, wrong_rows
from simulation.clocks import SECOND_US, Machine, ProcessClock
from simulation.coverage import Coverage
from simulation.observer import Observer
from simulation.processes import Process, SimulationLoop
from simulation.stage import Stage
from simulation.world import World

TROUBLE_SECONDS = (30.0, 90.0)
SHORT_TROUBLE_SECONDS = (8.0, 40.0)
LONG_SHARE = 0.25
"""So many lives are long: what takes its time is seen there, and the short ones begin in more ways."""
HEALING_SECONDS = 3_600.0
LOOKS = 3
"""How often the rows of a life are looked at while it is lived."""
RESUME_ROUNDS = 30
"""How many seconds of health pass before the operator looks again for queues that stand still."""


class Verdict(NamedTuple):
    """What one run showed."""

    seed: int
    violations: list[str]
    coverage: Coverage
    events: list[tuple[int, str, str, str]]
    healed_seconds: float
    """From the last fault until all had ended."""


def run(seed: int, stage: Stage | None = None) -> Verdict:
    """Run one seed. The same seed gives the same events, on a stage of its own and after others."""
    if stage is None:
        with Stage() as own:
            return run(seed, own)
    logger = logging.getLogger("perdure")
    told = logger.level
    logger.setLevel(logging.CRITICAL)
    enabled = gc.isenabled()
    gc.disable()
    try:
        with asyncio.Runner(loop_factory=SimulationLoop) as runner:
            return runner.run(_run(seed, stage))
    finally:
        logger.setLevel(told)
        if enabled:
            gc.enable()


async def _run(seed: int, stage: Stage) -> Verdict:
    if stage.new:
        await _prepare(stage)
    with stage.kept():
        world = World(seed, stage.path)
        problems: list[str] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(_told(context)))
        await world.open_behind()
        await world.declare()
        slots = _slots(world)
        try:
            return await _live(world, problems)
        finally:
            await _bury(world, slots)


async def _live(world: World, problems: list[str]) -> Verdict:
    operating = asyncio.get_running_loop().create_task(schedules.operate(world))
    await _trouble(world)
    operating.cancel()
    await asyncio.wait((operating,))
    _heal(world)
    await schedules.stop(world)
    healed = await _until_ended(world)
    # Repeats that are still on their way may begin something anew: a redrive.
    while (left := world.late_until - asyncio.get_running_loop().time()) >= 0:
        await asyncio.sleep(left + 1.0)
        await _until_ended(world)
    assert world.behind is not None
    found = [*world.witness.violations, *problems, *await wrong_at_the_end(world, world.behind.views)]
    world.coverage.facts["seeds"] += 1
    world.coverage.facts["tasks"] += len(world.witness.tasks)
    return Verdict(world.seed, found, world.coverage, world.events, healed)


def _told(context: dict[str, Any]) -> str:
    error = context.get("exception")
    return f"{context['message']}: {error!r}"


async def _prepare(stage: Stage) -> None:
    """Make an empty database with the observer's triggers."""
    clock = ProcessClock(Machine(asyncio.get_running_loop()))
    store = await SqliteStore.open(stage.path, clock=clock, inline=True, synchronous="OFF")
    await store.close()
    observer = Observer(stage.path)
    observer.install()
    observer.close()


# Processes and who starts them again


def _slots(world: World) -> list["asyncio.Task[None]"]:
    chance = world.chance("slots")
    loop = asyncio.get_running_loop()
    seconds = TROUBLE_SECONDS if chance.random() < LONG_SHARE else SHORT_TROUBLE_SECONDS
    until = loop.time() + chance.uniform(*seconds)
    world.until = until
    slots = [loop.create_task(_look_now_and_then(world))]
    slots += [loop.create_task(_keep("worker", world.worker, world)) for _ in range(chance.choice((2, 2, 3)))]
    slots.append(loop.create_task(_keep("duties", world.duties, world)))
    clients = [
        _keep("client", lambda process: world.client(process, until), world) for _ in range(chance.choice((1, 2)))
    ]
    return slots + [loop.create_task(each) for each in clients]


async def _keep(role: str, main: Callable[[Process], Any], world: World) -> None:
    """Start a process again whenever it has ended."""
    chance = world.chance(f"keeper of {role} {len(world.keepers)}")
    world.keepers.append(role)
    loop = asyncio.get_running_loop()
    while not world.over:
        if role == "client" and loop.time() >= world.until:
            return
        process = world.begin(role, main)
        world.running.append(process)
        await process.ended.wait()
        world.running.remove(process)
        # Time passes in any case: who fails at once, again and again, is to be found at the end.
        await asyncio.sleep(0.1 if world.healthy else chance.choice((0.1, 1.0, 5.0, 20.0)))


async def _look_now_and_then(world: World) -> None:
    """Look at the rows while they are on the move: between two commits they agree with each other."""
    chance = world.chance("looks")
    for _ in range(LOOKS):
        await asyncio.sleep(chance.uniform(2.0, 40.0))
        for each in wrong_rows(world):
            world.witness.wrong(f"at {asyncio.get_running_loop().time():.1f} s: {each}")


# Trouble


async def _trouble(world: World) -> None:
    """Let time pass until trouble ends, with faults that strike processes and machine now and then."""
    chance, loop = world.chance("trouble"), asyncio.get_running_loop()
    faults = (_kill, _kill, _stop, _stop, _step_wall, _jump, _restart, _away, _drain)
    pause = chance.choice((4.0, 10.0, 30.0))
    while (left := world.until - loop.time()) > 0:
        await asyncio.sleep(min(left, chance.expovariate(1 / pause)))
        if world.until > loop.time():
            await chance.choice(faults)(world, chance)


def _victim(world: World, chance: random.Random, role: str = "") -> Process | None:
    found = [each for each in world.running if each.name.startswith(role) and not each.stopped]
    return chance.choice(found) if found else None


async def _kill(world: World, chance: random.Random) -> None:
    if process := _victim(world, chance):
        world.coverage.faults["killed"] += 1
        world.crash(process, "killed")


async def _stop(world: World, chance: random.Random) -> None:
    if process := _victim(world, chance, chance.choice(("worker", "worker", "duties"))):
        seconds = chance.choice((4.0, 12.0, 25.0, 45.0))
        if seconds > 10.0:
            world.coverage.faults["stopped longer than a lease"] += 1
        world.log(process.name, "is stopped", f"{seconds}")
        process.stop()
        asyncio.get_running_loop().call_later(seconds, _go_on, world, process)


def _go_on(world: World, process: Process) -> None:
    if not process.dead and not world.over:
        world.log(process.name, "goes on")
        process.go_on()


async def _step_wall(world: World, chance: random.Random) -> None:
    world.coverage.faults["wall clock stepped"] += 1
    world.machine.step_wall(chance.choice((-3_600, -5, 5, 3_600)) * SECOND_US)


async def _jump(world: World, chance: random.Random) -> None:
    world.coverage.faults["store's clock jumped"] += 1
    world.log("machine", "was suspended")
    world.machine.jump(chance.choice((3, 15, 60)) * SECOND_US)


async def _restart(world: World, chance: random.Random) -> None:
    world.coverage.faults["machine restarted"] += 1
    world.log("machine", "restarts")
    for process in list(world.running):
        world.crash(process, "restart")
    await world.restart_machine()


async def _away(world: World, chance: random.Random) -> None:
    seconds = chance.choice((2.0, 11.0, 30.0))
    if seconds > 10.0:
        world.coverage.faults["store away longer than a lease"] += 1
    world.log("store", "is away", f"{seconds}")
    world.network.away = True
    await asyncio.sleep(seconds)
    world.network.away = False


async def _drain(world: World, chance: random.Random) -> None:
    if process := _victim(world, chance, "worker"):
        worker = world.draining.get(process.name)
        if worker is not None:
            world.coverage.faults["worker drained"] += 1
            worker.drain()


# Healing


def _heal(world: World) -> None:
    """Nothing fails from now on. What is stopped goes on, with all that it was about to do."""
    world.log("world", "heals")
    world.network.calm, world.network.away = True, False
    for process in list(world.running):
        process.go_on()
        # A worker that was paused or whose clock is off is replaced, as an operator would.
        if process.name.startswith("worker"):
            worker = world.draining.get(process.name)
            if worker is not None:
                worker.drain()


async def _until_ended(world: World) -> float:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    rounds = 0
    while world.observer.open_work():
        if rounds % RESUME_ROUNDS == 0:
            # A pause that was under way when all became well is lifted too.
            await world.resume()
        rounds += 1
        if loop.time() - begun > HEALING_SECONDS:
            world.witness.wrong(
                f"{world.observer.open_work()} tasks have not ended after {HEALING_SECONDS} s of health"
            )
            break
        await asyncio.sleep(1.0)
    return loop.time() - begun


async def _bury(world: World, slots: list["asyncio.Task[None]"]) -> None:
    """Let everything unwind, the dead too; nothing of it is looked at any more."""
    world.over = True
    for slot in slots:
        slot.cancel()
    for process in [*world.running, *world.graves]:
        process.bury()
    current = asyncio.current_task()
    rest = [each for each in asyncio.all_tasks() if each is not current]
    for _ in range(20):
        for each in rest:
            each.cancel()
        await asyncio.sleep(0.5)
        rest = [each for each in rest if not each.done()]
        if not rest:
            break
    await world.close()
