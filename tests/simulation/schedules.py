"""Schedules of a simulated life: what an operator does with them, and that each instant came once."""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from perdure.ambient import Chance, Ids
from perdure.domain.timing import instants
from perdure.engine.engine import Engine
from perdure.engine.requests import Principal, TaskRequest
from perdure.engine.schedule_definition import ScheduleDefinition, read_definition, understand
from perdure.engine.zones import Zones
from perdure.store.schedules import Fire, Schedule
from perdure.store.views import TaskView
from simulation import workload
from simulation.clocks import ProcessClock

if TYPE_CHECKING:
    from simulation.world import World

OPERATOR = Principal("operator")
NAMES = ("beat", "tick")
ZONES = Zones()


async def operate(world: "World") -> None:
    """Declare schedules, and change, pause, resume and trigger them now and then, for as long as there is trouble."""
    chance = world.chance("schedules")
    if chance.random() < 0.3:
        return
    times: dict[str, dict[str, Any]] = {}
    for name in NAMES[: chance.choice((1, 2))]:
        times[name] = chance.choice(({"every": 3.0}, {"every": 7.0}, {"cron": "*/5 * * * * *"}))
        view = await _engine(world, chance).schedules.put(name, _definition(chance, times[name]), OPERATOR)
        world.first_instants[name] = view.next_us or 0
    while True:
        await asyncio.sleep(chance.uniform(3.0, 20.0))
        schedules = _engine(world, chance).schedules
        name = chance.choice(sorted(times))
        act = chance.choice(("pause", "resume", "resume", "trigger", "change"))
        world.log("operator", f"{act} {name}")
        if act == "change":
            await schedules.put(name, _definition(chance, times[name]), OPERATOR)
        else:
            await getattr(schedules, act)(name, OPERATOR)
        world.committed_elsewhere()


async def stop(world: "World") -> None:
    """Let nothing more come of schedules, so that all can end."""
    schedules = _engine(world, world.chance("end of schedules")).schedules
    for name in NAMES:
        if await schedules.get(name, OPERATOR) is not None:
            await schedules.pause(name, OPERATOR)


def _engine(world: "World", chance: random.Random) -> Engine:
    assert world.behind is not None
    clock = ProcessClock(world.machine)
    drawn = Chance(chance.getrandbits(32))
    store: Any = world.behind
    return Engine(store, clock=clock, ids=Ids(clock, drawn.bits), chance=drawn)


def _definition(chance: random.Random, when: dict[str, Any]) -> ScheduleDefinition:
    return ScheduleDefinition(
        **when,
        # Some scripts hang.
        task=TaskRequest(kind="act", payload=workload.script(chance, 0.8), timeout=4.0),
        catch_up=chance.choice((0.0, 120.0)),
        overlap=chance.choice(("allow", "skip", "queue_one", "cancel_running")),
        jitter=chance.choice((0.0, 0.0, 2.0)),
    )


async def wrong_of_schedules(world: "World", tasks: Mapping[str, TaskView]) -> list[str]:
    """One line for each instant that came twice, or not at all."""
    assert world.behind is not None
    found: list[str] = []
    for name in NAMES:
        schedule = await world.behind.schedules.get("default", name)
        if schedule is not None:
            fires = await world.behind.schedules.fires("default", name, None, 1_000_000)
            world.coverage.facts["fires"] += len(fires)
            found += [f"schedule {name}: {fact}" for fact in _wrong(world, tasks, schedule, fires[::-1])]
    return found


def _wrong(world: "World", tasks: Mapping[str, TaskView], schedule: Schedule, fires: list[Fire]) -> list[str]:
    wrong: list[str] = []
    made = Counter(each.task_id for each in fires if each.task_id is not None)
    wrong += [f"{count} instants made task {task}" for task, count in made.items() if count > 1]
    known = world.witness.tasks
    wrong += [f"task {task} is not there" for task in made if task not in tasks and not known[task].removed]
    owned = {id for id, task in tasks.items() if task.principal == f"schedule:{schedule.name}"}
    wrong += [f"task {task} belongs to no instant" for task in sorted(owned - made.keys())]
    definition = read_definition(schedule.document)
    timing = understand("default", schedule.name, definition, schedule.anchor_us, ZONES, world.store_us()).timing
    told: list[int] = []
    for each in fires:
        if each.cause == "time":
            of_it = list(takewhile(lambda at, each=each: at <= each.last_us, instants(timing, each.first_us - 1)))
            if len(of_it) != each.instants:
                wrong.append(f"{each} tells of {each.instants} instants, there are {len(of_it)}")
            told += of_it
    begun = world.first_instants[schedule.name]
    due = list(takewhile(lambda at: at < (schedule.next_us or 0), instants(timing, begun - 1)))
    if sorted(told) != due:
        wrong.append(f"{len(due)} instants came, {len(told)} are told of, {len(set(told))} of them once")
    return wrong
