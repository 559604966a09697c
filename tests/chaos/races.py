"""Cases in which several processes want the same thing at the same instant."""

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import apsw

from chaos.arena import Arena
from chaos.crew import Member
from chaos.operations import OperationLog

MEBIBYTE = 1024 * 1024
WAL_BOUND_BYTES = 80 * MEBIBYTE
"""The log is cut from 64 MB on; a flush may be under way."""
BATCH = 200


async def contention(arena: Arena) -> None:
    """Four clients and four workers on one file, and a reader that keeps its snapshot."""
    seconds = 5.0 if arena.quick else 60.0
    count = 100 if arena.quick else 2_500
    await arena.submit("nap", range(10))
    logs = [OperationLog(arena.folder / f"client-{n}") for n in range(4)]
    clients = [
        arena.crew.client(log.path, do="submit", first=n * 100_000 + 1_000, count=count, payload={"filling": "x" * 500})
        for n, log in enumerate(logs)
    ]
    workers = [arena.crew.worker() for _ in range(4)]
    await arena.until(lambda: all(log.read("answered") for log in logs), 60, "every client was answered")
    largest = await _read_for(arena, seconds, clients)
    codes = [await asyncio.to_thread(client.wait, 120) for client in clients]
    arena.check(codes == [0] * 4, f"clients ended with {codes}")
    released = time.monotonic()
    await arena.all_ended(120)
    arena.recovered(time.monotonic() - released, 60)
    await _logs_agree(arena, logs, count)
    for worker in workers:
        arena.check(worker.end() == 0, f"a worker ended with {worker.code}")
    busy = [
        each.pid for each in arena.crew.members if "locked" in each.log.read_text() or "busy" in each.log.read_text()
    ]
    arena.check(not busy, f"processes that saw a busy store: {busy}")
    await arena.submit("nap", range(20, 30))
    wal = _wal_bytes(arena)
    arena.check(wal <= WAL_BOUND_BYTES, f"the log has {wal / MEBIBYTE:.0f} MB after the reader has gone")
    arena.figure(tasks=4 * count, reader=seconds, wal_with_reader_mb=largest / MEBIBYTE, wal_after_mb=wal / MEBIBYTE)
    last = arena.crew.worker()
    await arena.all_ended(60)
    last.end()
    await arena.judge()


async def _read_for(arena: Arena, seconds: float, clients: list[Member]) -> int:
    """Hold a snapshot for so long; the largest size of the log meanwhile, in bytes."""
    connection = apsw.Connection(arena.crew.store)
    connection.execute("BEGIN")
    first = list(connection.execute("SELECT count(*) FROM sqlite_schema"))
    largest, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        largest = max(largest, _wal_bytes(arena))
        await asyncio.sleep(0.1)
    arena.check(list(connection.execute("SELECT count(*) FROM sqlite_schema")) == first, "the snapshot moved")
    connection.close()
    return largest


def _wal_bytes(arena: Arena) -> int:
    wal = Path(f"{arena.crew.store}-wal")
    return wal.stat().st_size if wal.exists() else 0


async def _logs_agree(arena: Arena, logs: list[OperationLog], count: int) -> None:
    ids = {each.id for each in await arena.tasks()}
    for log in logs:
        answered = log.read("answered")
        arena.check(len(answered) == count, f"a client was answered {len(answered)} of {count} times")
        arena.check(not log.refusals(), f"a client was refused: {log.refusals()}")
        lost = {entry["id"] for entry in answered.values()} - ids
        arena.check(not lost, f"{len(lost)} acknowledged submits are lost")


async def fan_in(arena: Arena) -> None:
    """Diamonds whose last two parents end at the same moment in different processes; in every third, one fails."""
    diamonds = 100 if arena.quick else 1_000
    meetings = arena.folder / "meetings"
    meetings.mkdir()
    workers = [arena.crew.worker(queues=["default", side], concurrency=40, prefetch=0) for side in ("left", "right")]
    began = time.monotonic()
    submits = [_diamond(arena, number, str(meetings)) for number in range(diamonds)]
    for start in range(0, diamonds, BATCH):
        await asyncio.gather(*submits[start : start + BATCH])
    await arena.all_ended(60 if arena.quick else 300)
    arena.recovered(time.monotonic() - began, 240)
    met, missed = arena.effects.count("met"), arena.effects.count("missed")
    ran = Counter(each.number for each in arena.effects.read("start") if each.number >= JOIN)
    states: dict[str, Counter[str]] = {}
    tasks = [each for each in await arena.tasks() if each.kind == "nap" and each.name in ("all", "any")]
    for task in tasks:
        assert task.name is not None
        states.setdefault(task.name, Counter())[str(task.state)] += 1
    failing = len(range(0, diamonds, 3))
    expected = {"all": {"succeeded": diamonds - failing, "cancelled": failing}, "any": {"succeeded": diamonds}}
    arena.check({name: dict(found) for name, found in states.items()} == expected, f"joins ended {states}")
    arena.check(set(ran.values()) <= {1}, f"joins that ran twice: {[n for n, count in ran.items() if count > 1][:5]}")
    arena.check(len(ran) == 2 * diamonds - failing, f"{len(ran)} joins ran, not {2 * diamonds - failing}")
    early = _early_joins(arena)
    arena.check(not early, f"joins that ran before a parent's end: {early[:5]}")
    for worker in workers:
        arena.check(worker.end() == 0, f"a worker ended with {worker.code}")
    arena.figure(diamonds=diamonds, met=met, missed=missed)
    await arena.judge()


JOIN = 1_000_000
"""From here on numbers are those of joins: twice the diamond's number, plus one for the one that any end satisfies."""


async def _diamond(arena: Arena, number: int, meetings: str) -> None:
    with arena.app.job(f"diamond {number}") as job:
        top = job.add("nap", payload={"number": number}, name="top")
        sides = [
            job.add(
                "meet",
                payload={
                    "number": number,
                    "folder": meetings,
                    "side": side,
                    "other": other,
                    "fails": side == "right" and number % 3 == 0,
                },
                name=side,
                queue=side,
                after=[top],
                max_attempts=1,
            )
            for side, other in (("left", "right"), ("right", "left"))
        ]
        job.add("nap", payload={"number": JOIN + 2 * number}, name="all", after=sides)
        job.add("nap", payload={"number": JOIN + 2 * number + 1}, name="any", after=sides, trigger="all_done")
    arena.log.answered(f"diamond-{number}", id=(await job.submit()).id)


def _early_joins(arena: Arena) -> list[int]:
    parents: dict[int, list[float]] = {}
    for each in arena.effects.read("met", "missed"):
        parents.setdefault(each.number, []).append(each.at)
    joins = [each for each in arena.effects.read("start") if each.number >= JOIN]
    return [
        each.number
        for each in joins
        if len(known := parents.get((each.number - JOIN) // 2, [])) != 2 or max(known) > each.at
    ]


async def cancel_race(arena: Arena) -> None:
    """Cancel, settle and redrive of the same task at once."""
    rounds = 100 if arena.quick else 1_000
    workers = await _workers_at_work(arena)
    ways = ["fail", "ok", "ok", "ok", "ok"]
    answers: Counter[str] = Counter()
    cancelled: dict[str, float] = {}
    began = time.monotonic()

    async def one(number: int) -> None:
        payload = {"number": number, "seconds": [arena.random.uniform(0, 0.02)] * 5, "ways": ways}
        handle = await arena.app.submit("turns", payload=payload, retry=None)
        arena.log.answered(f"turn-{number}", id=handle.id)
        await asyncio.gather(
            _cancel_at(arena, handle.id, arena.random.uniform(0.0, 0.3), answers, cancelled),
            _redrive_until(arena, handle.id, arena.random.uniform(0.0, 0.4), answers),
        )

    for start in range(0, rounds, 50):
        await asyncio.gather(*(one(number) for number in range(start, min(start + 50, rounds))))
    await arena.all_ended(60)
    arena.recovered(time.monotonic() - began, 180)
    starts = arena.effects.by_task("start")
    late = [task for task, at in cancelled.items() for run in starts.get(task, []) if run.at > at]
    arena.check(not late, f"{len(late)} starts after a cancel was answered: {late[:5]}")
    for worker in workers:
        arena.check(worker.end() == 0, f"a worker ended with {worker.code}")
    arena.figure(rounds=rounds, **answers, states=dict(await arena.counts()))
    await arena.judge()


async def _workers_at_work(arena: Arena) -> list[Member]:
    """Two workers, each of which has run something already."""
    workers = [arena.crew.worker(concurrency=5, prefetch=0) for _ in range(2)]
    await arena.submit("nap", range(JOIN, JOIN + 40), payload={"seconds": 0.1})
    await arena.all_ended(60)
    number = JOIN + 40
    while len({each.pid for each in arena.effects.read("end")}) < len(workers) and number < JOIN + 400:
        await arena.submit("nap", range(number, number + 40), payload={"seconds": 0.1})
        await arena.all_ended(60)
        number += 40
    return workers


async def _cancel_at(
    arena: Arena, task_id: str, seconds: float, answers: Counter[str], cancelled: dict[str, float]
) -> None:
    await asyncio.sleep(seconds)
    answer = await arena.app.handle(task_id).cancel()
    answers[f"cancel_{answer.answer}"] += 1
    if answer.answer == "cancelled":
        cancelled[task_id] = time.monotonic()


async def _redrive_until(arena: Arena, task_id: str, seconds: float, answers: Counter[str]) -> None:
    """Two redrives at the same time: at most one of them may be taken."""
    await asyncio.sleep(seconds)
    operations = await arena.app.operations()
    both = await asyncio.gather(*(operations.redrive([task_id], arena.app.principal) for _ in range(2)))
    taken = sum(isinstance(answer, str) for [answer] in both)
    answers["redriven"] += taken
    arena.check(taken <= 1, f"both of two redrives of {task_id} were taken")


async def one_key(arena: Arena) -> None:
    """Fifty threads of two processes submit under one key at the same instant, every fifth with another body."""
    keys = [f"key-{n}" for n in range(5 if arena.quick else 100)]
    logs = [OperationLog(arena.folder / f"racer-{n}") for n in range(2)]
    await arena.submit("nap", range(1))
    began = time.monotonic()
    racers = [
        arena.crew.client(log.path, do="race", name=f"racer-{n}", keys=keys, threads=25) for n, log in enumerate(logs)
    ]
    codes = [await asyncio.to_thread(racer.wait, 100) for racer in racers]
    arena.check(codes == [0, 0], f"racers ended with {codes}")
    created = Counter[str]()
    for key in keys:
        answered = [(e, v) for log in logs for e, v in log.read("answered").items() if e.startswith(f"{key}|")]
        refused = [(e, v) for log in logs for e, v in log.read("refused").items() if e.startswith(f"{key}|")]
        _judge_key(arena, key, answered, refused)
        created[key] = sum(not entry["replayed"] for _, entry in answered)
    worker = arena.crew.worker()
    await arena.all_ended(60)
    arena.recovered(time.monotonic() - began, 100)
    runs = Counter(len(found) for found in arena.effects.by_task("start").values())
    arena.check(set(runs) == {1}, f"runs of tasks: {runs}")
    arena.check(len(await arena.tasks()) == len(keys) + 1, "there is not one task for each key")
    worker.end()
    arena.figure(keys=len(keys), threads=50, created=sum(created.values()))
    await arena.judge()


Entries = list[tuple[str, dict[str, Any]]]


def _judge_key(arena: Arena, key: str, answered: Entries, refused: Entries) -> None:
    """Whoever came first decides the body: one is created, the same body replays, the other conflicts."""
    created = [entry for entry, told in answered if not told["replayed"]]
    arena.check(len(created) == 1, f"{key}: {len(created)} were created")
    arena.check(len({told["id"] for _, told in answered}) == 1, f"{key}: several ids were answered")
    bodies = {entry.rpartition("|")[2] for entry, _ in answered}
    arena.check(len(bodies) == 1, f"{key}: both bodies were taken")
    wrong = [entry for entry, _ in refused if entry.rpartition("|")[2] in bodies]
    arena.check(not wrong, f"{key}: the same body was refused: {wrong[:3]}")
    codes = {told["code"] for _, told in refused}
    arena.check(codes == {"idempotency_conflict"}, f"{key}: refused with {codes}")
    arena.check(len(answered) + len(refused) == 50, f"{key}: {len(answered) + len(refused)} answers")
