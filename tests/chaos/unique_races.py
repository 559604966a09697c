"""Cases in which many submit for one unique key at the same instant, and some of them roll back."""

import asyncio
import time
from collections import Counter
from typing import Any

from chaos.arena import Arena
from chaos.operations import OperationLog

PROCESSES, THREADS = 2, 25


async def unique_race(arena: Arena) -> None:
    """Of fifty one is stored: the others are refused, or told which one it is, by turns."""
    keys = [f"key-{n}" for n in range(6 if arena.quick else 60)]
    began = time.monotonic()
    answers = await _race(arena, keys[::2], on_conflict="reject")
    answers |= await _race(arena, keys[1::2], on_conflict="return_existing")
    kept = 0
    for place, key in enumerate(keys):
        told = [entry for entry in answers[key] if entry["kept"]]
        kept += len(told)
        created = [each["id"] for each in told if each.get("outcome") == "created"]
        arena.check(len(created) == 1, f"{key}: {len(created)} were created")
        others = [each for each in told if each.get("outcome") != "created"]
        codes = {each.get("code") for each in others}
        outcomes = {(each.get("outcome"), each.get("id")) for each in others}
        right = codes == {"unique_conflict"} if place % 2 == 0 else outcomes == {("existing", *created)}
        arena.check(right, f"{key}: the others were answered {codes} {outcomes}")
    await _drain(arena, len(keys), began)
    arena.figure(keys=len(keys), submitters=PROCESSES * THREADS, kept=kept)
    await arena.judge()


async def debounce_race(arena: Arena) -> None:
    """Of fifty one task is made, which runs once, with the payload of one that was not rolled back."""
    keys = [f"key-{n}" for n in range(4 if arena.quick else 60)]
    began = time.monotonic()
    answers = await _race(arena, keys, on_conflict="debounce", wait=300, max_wait=0.001)
    ran = await _drain(arena, len(keys), began)
    for key in keys:
        told = [entry for entry in answers[key] if entry["kept"]]
        outcomes = Counter(each.get("outcome") for each in told)
        arena.check(outcomes == {"created": 1, "debounced": len(told) - 1}, f"{key}: {dict(outcomes)}")
        arena.check(len({each.get("id") for each in told}) == 1, f"{key}: several ids were answered")
        numbers = {each["number"] for each in told}
        arena.check(ran[str(told[0].get("id"))] in numbers, f"{key}: it ran with what was rolled back")
    arena.figure(keys=len(keys), submitters=PROCESSES * THREADS)
    await arena.judge()


async def _race(arena: Arena, keys: list[str], **unique: Any) -> dict[str, list[dict[str, Any]]]:
    """What each submitter was told, by key."""
    # Its kind is known before the first race, which is about keys alone.
    await arena.submit("probe", range(1))
    logs = [OperationLog(arena.folder / f"{unique['on_conflict']}-{n}") for n in range(PROCESSES)]
    racers = [
        arena.crew.client(log.path, do="unique", keys=keys, threads=THREADS, first=(n + 1) * 100_000, unique=unique)
        for n, log in enumerate(logs)
    ]
    codes = [await asyncio.to_thread(racer.wait, 200) for racer in racers]
    arena.check(codes == [0] * PROCESSES, f"racers ended with {codes}")
    answers: dict[str, list[dict[str, Any]]] = {key: [] for key in keys}
    for log in logs:
        for entry, told in (log.read("answered") | log.read("refused")).items():
            key, number, fate = entry.split("|")
            answers[key].append({**told, "number": int(number), "kept": fate == "kept"})
    for key, told in answers.items():
        arena.check(len(told) == PROCESSES * THREADS, f"{key}: {len(told)} answers")
    return answers


async def _drain(arena: Arena, count: int, began: float) -> dict[str, int]:
    """Let all run; the number with which each task ran, by id. There is one for each key."""
    worker = arena.crew.worker()
    await arena.all_ended(60)
    arena.recovered(time.monotonic() - began, 200)
    worker.end()
    probes = [each for each in await arena.tasks() if each.kind == "probe" and each.idempotency_key is None]
    arena.check(len(probes) == count, f"{len(probes)} tasks for {count} keys")
    starts = arena.effects.by_task("start")
    runs = Counter(len(starts.get(each.id, ())) for each in probes)
    arena.check(set(runs) == {1}, f"runs of tasks: {dict(runs)}")
    return {each.id: starts[each.id][0].number for each in probes if each.id in starts}
