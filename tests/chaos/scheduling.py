"""Cases about schedules: several schedulers at once, and clocks that are set while nobody is there."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import apsw

import perdure
from chaos import faults
from chaos.arena import Arena
from chaos.crew import Member
from perdure.ambient import SystemClock
from perdure.domain.calendar import DAY_S
from perdure.domain.timing import Timing, instants
from perdure.engine.schedule_definition import ScheduleDefinition, definition_of, understand
from perdure.engine.zones import DatabaseZone, Zones
from perdure.store.schedules import Fire

SECOND = 1_000_000
MINUTE = 60 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LEASE = 5.0
AWAY_SECONDS = 6.0
"""How long a scheduler stands still: longer than anything that it might have believed."""

ZONES = Zones()


async def came(app: perdure.App, name: str) -> list[Fire]:
    """All that came of the instants of a schedule, in order."""
    operations = (await app.operations()).schedules
    found: list[Fire] = []
    cursor: str | None = None
    while True:
        page = await operations.fires(name, app.principal, 1_000, cursor)
        found += page.fires
        cursor = page.cursor
        if cursor is None:
            return found[::-1]


def timing_of(name: str, said: Mapping[str, Any]) -> Timing:
    """When a schedule comes, as far as its definition alone tells."""
    definition: ScheduleDefinition = definition_of(said)
    return understand("default", name, definition, 0, ZONES, SystemClock().wall_us()).timing


async def judge_instants(arena: Arena, app: perdure.App, name: str) -> list[Fire]:
    """Each instant since the schedule was made is there once: fired, waiting, or skipped by its policy."""
    view = await app.schedules.get(name)
    assert view is not None
    found = await came(app, name)
    timing = timing_of(name, view.definition)
    told: list[int] = []
    for each in found:
        of_it = list(takewhile(lambda at, each=each: at <= each.last_us, instants(timing, each.first_us - 1)))
        arena.check(len(of_it) == each.instants, f"{name}: a row tells of {each.instants} instants, not {len(of_it)}")
        told += of_it
    last = max(told, default=0)
    due = list(takewhile(lambda at: at <= last, instants(timing, view.declared_us)))
    twice = [at for at, count in Counter(told).items() if count > 1]
    arena.check(not twice, f"{name}: instants that are told of twice: {twice[:3]}")
    arena.check(sorted(told) == due, f"{name}: {len(due)} instants came and {len(told)} are told of")
    made = Counter(each.task_id for each in found if each.outcome == "fired")
    arena.check(all(count == 1 for count in made.values()), f"{name}: a task that two instants made")
    return found


async def two_schedulers(arena: Arena) -> None:
    """Several schedulers: one stands still past its time and goes on, others are killed, clocks step by an hour."""
    start = EPOCH + timedelta(seconds=time.time() // 1)
    for name, options, seconds in (
        ("each-second", {"every": 1.0, "start": start, "overlap": "allow"}, 0.0),
        ("by-cron", {"overlap": "allow", "jitter": 1.0}, 0.0),
        ("long-ones", {"every": 1.0, "start": start, "overlap": "skip"}, 2.5),
        ("one-waits", {"every": 1.0, "start": start, "overlap": "queue_one"}, 1.5),
    ):
        cron = "*/2 * * * * *" if name == "by-cron" else None
        call = arena.app.call("nap", payload={"number": 0, "seconds": seconds}, lease=LEASE)
        await arena.app.schedules.put(name, call, cron, **options)
    steady, other = arena.crew.worker(), arena.crew.worker()
    await arena.until(lambda: arena.effects.count("start") > 0, 60, "something was fired")
    for round in range(2 if arena.quick else 8):
        await asyncio.to_thread(steady.pause)
        await asyncio.sleep(1.0)
        other.kill()
        other = arena.crew.worker(environ={faults.WALL: ("3600@1", "-3600@1")[round % 2]})
        await asyncio.sleep(AWAY_SECONDS - 1.0)
        steady.resume()
        await asyncio.sleep(1.5)
    names = [each.name for each in await arena.app.schedules.all()]
    for name in names:
        await arena.app.schedules.pause(name)
    began = time.monotonic()
    await arena.all_ended(90)
    arena.recovered(time.monotonic() - began, LEASE + 15)
    fired = {name: await judge_instants(arena, arena.app, name) for name in names}
    owners = Counter(each.principal for each in await arena.tasks())
    for name, found in fired.items():
        count = sum(1 for each in found if each.outcome == "fired")
        arena.check(owners[f"schedule:{name}"] == count, f"{name}: {owners[f'schedule:{name}']} tasks, {count} fires")
    late = max(each.at_us - each.first_us for each in fired["each-second"] if each.outcome == "fired")
    arena.figure(fires=sum(owners.values()), latest=late / SECOND)
    for member in (steady, other):
        member.end()
    await arena.judge()


class Moment(NamedTuple):
    """When a zone's clock is set: seconds since 1970 UTC, and from which offset to which."""

    zone: str
    at: int
    before: int
    after: int

    @property
    def name(self) -> str:
        """For people and for files."""
        return f"{self.zone.replace('/', '-')}-{'gap' if self.after > self.before else 'fold'}"

    @property
    def cron(self) -> str:
        """Each day at the middle of what the clock skips, or shows twice."""
        local = (self.at + (self.before + self.after) // 2) % DAY_S
        return f"{local // 60 % 60} {local // 3600} * * *"


def moments(zone: str) -> list[Moment]:
    """When a zone's clock is set in 2026."""
    at, found = round(datetime(2026, 1, 1, tzinfo=UTC).timestamp()), []
    known: DatabaseZone = ZONES(zone)
    while at < round(datetime(2027, 1, 1, tzinfo=UTC).timestamp()):
        period = known.period(at)
        if period.start == at and period.before != period.offset:
            found.append(Moment(zone, at, period.before, period.offset))
        at = period.end
    return found


def travel(path: Path, to_us: int) -> None:
    """Set the time of a store that nobody has open."""
    with apsw.Connection(str(path)) as connection:
        connection.execute(
            "UPDATE perdure_meta SET value = ? WHERE key = 'offset_us'", (to_us - SystemClock().boot_us(),)
        )
        connection.execute("UPDATE perdure_meta SET value = 0 WHERE key = 'last_us'")
    connection.close()


async def dst_and_downtime(arena: Arena) -> None:
    """In four zones the clock is set while nobody is there to see it, and half an hour later somebody is again."""
    every = [
        each
        for zone in ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Cairo")
        for each in moments(zone)
    ]
    arena.check(len(every) == 8, f"four zones set their clocks {len(every)} times in 2026, not 8 times")
    arena.random.shuffle(every)
    for each in every[:2] if arena.quick else every:
        await _pass_through(arena, each)
    arena.figure(moments=len(every[:2] if arena.quick else every))


async def _pass_through(arena: Arena, moment: Moment) -> None:
    path = arena.folder / f"{moment.name}.db"
    at_us = moment.at * SECOND
    app = perdure.App(str(path))
    async with app:
        await app.schedules.all()
    travel(path, at_us - 60 * MINUTE)
    async with app:
        nap = {"number": 0}
        zone: Any = {"time_zone": moment.zone, "overlap": "allow"}
        await app.schedules.put("as-by-default", "nap", moment.cron, payload=nap, **zone)
        await app.schedules.put("otherwise", "nap", moment.cron, payload=nap, gap="skip", fold="both", **zone)
        await app.schedules.put("by-the-minute", "nap", "* * * * *", payload=nap, time_zone=moment.zone, catch_up=600)
    travel(path, at_us - 2 * SECOND)
    await _scheduler(arena, path, at_us)
    travel(path, at_us + 31 * MINUTE)
    await _scheduler(arena, path, at_us + 31 * MINUTE)
    async with app:
        for name in ("as-by-default", "otherwise", "by-the-minute"):
            await judge_instants(arena, app, name)
        await _judge_policies(arena, app, moment)


async def _scheduler(arena: Arena, path: Path, until_us: int) -> None:
    """A process with its duties, until all that has come by an instant was decided about; then it is killed."""
    member = _start(arena, path)
    app = perdure.App(str(path))
    async with app:
        store = (await app.system()).own_store()

        async def decided() -> bool:
            due = await store.schedules.due(10)
            return due.now_us > until_us + SECOND and not due.schedules

        await arena.until_async(decided, 60, f"{path.stem}: what has come is decided about")
    member.kill()


def _start(arena: Arena, path: Path) -> Member:
    crew = arena.crew
    return crew.worker(at=str(path))


async def _judge_policies(arena: Arena, app: perdure.App, moment: Moment) -> None:
    at_us = moment.at * SECOND
    shift_us = abs(moment.after - moment.before) * SECOND
    fired = {
        name: [each.first_us - at_us for each in await came(app, name) if each.outcome == "fired"]
        for name in ("as-by-default", "otherwise")
    }
    if moment.after > moment.before:
        expected = {"as-by-default": [0], "otherwise": []}
    else:
        half = shift_us // 2
        expected = {"as-by-default": [-half], "otherwise": [-half, half]}
    arena.check(fired == expected, f"{moment.name}: fired {fired}, declared were {expected}")
