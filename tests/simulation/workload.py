"""What the simulated handlers do: each task carries a script, chosen from the seed."""

import asyncio
import random
from typing import TYPE_CHECKING, Any

import apsw

from perdure.domain.retry import Retry
from perdure.engine.requests import Dependency, JobRequest, JobTaskRequest, TaskRequest
from perdure.errors import LeaseLost
from perdure.worker.context import Context
from perdure.worker.registry import Registry
from perdure.worker.verdicts import Cancel, Fail, Partly, RetryAfter, Snooze
from simulation import breakers, gated, growing, unique
from simulation.processes import RUNNING_AS, die

if TYPE_CHECKING:
    from simulation.world import World

KINDS = ("act", "act", "act", "hasty", "other")
KEYED = (*gated.KINDS, breakers.FRAIL)
QUEUES = (None, None, None, "aside", "plain")
"""`plain` keeps no dead letters."""
GOOD = ("ok", "ok", "ok", "partly", "receipt")
BAD = (
    "error",
    "error",
    "fail",
    "cancel",
    "snooze",
    "retry after",
    "hang",
    "stubborn",
    "crash",
    "receipt and error",
    "receipt and crash",
)
TRIGGERS = ("all_succeeded", "all_succeeded", "all_done", "any_succeeded", "any_failed")
SECOND_US = 1_000_000


def registry(world: "World") -> Registry:
    """The handlers of one worker process."""

    async def act(
        *,
        steps: list[Any] | None = None,
        ends: list[str] | None = None,
        key: str | None = None,
        results: list[Any] | None = None,
        ctx: Context,
    ) -> Any:
        runs = world.handler_begins(ctx)
        ends = ends or ["ok"]
        try:
            for step in steps or ():
                if isinstance(step, dict):
                    await growing.grow(step, ctx, world)
                else:
                    await _take(step, ctx)
            return await _end(ends[min(runs, len(ends)) - 1], world, ctx)
        finally:
            world.handler_ends(ctx)

    made = Registry()
    made.add("act", act, lease=10.0, retry=Retry(3, base=2.0, cap=20.0))
    made.add("hasty", act, lease=5.0, timeout=4.0, retry=Retry(2, backoff="fixed", base=1.0), queue="aside")
    made.add("other", act, lease=8.0, on_loss="count", max_losses=4, retry=Retry(4, base=1.0, cap=5.0))
    for kind, said in (gated.KINDS | breakers.KINDS).items():
        made.add(kind, act, retry=Retry(3, base=1.0, cap=4.0), **said)
    return made


async def _take(step: Any, ctx: Context) -> None:
    match step:
        case float() | int():
            await asyncio.sleep(step)
        case "progress":
            ctx.progress(1, 2)
        case "phase":
            ctx.phase("executing")
        case "checkpoint":
            await ctx.checkpoint({"attempt": ctx.attempt})
        case "part":
            await ctx.part({"n": 1}, key="one")
        case "last part":
            await ctx.part({"n": 2}, final=True)


async def _end(end: str, world: "World", ctx: Context) -> Any:
    value = {"by": ctx.attempt_id}
    match end:
        case "ok":
            return value
        case "partly":
            raise Partly(value, "one is missing")
        case "error":
            raise OSError("no route")
        case "fail":
            raise Fail("never")
        case "cancel":
            raise Cancel("not needed")
        case "snooze":
            raise Snooze(3)
        case "retry after":
            raise RetryAfter(4)
        case "hang":
            await asyncio.sleep(10_000)
        case "stubborn":
            await _stay(60)
        case "crash":
            await _crash(world, "crashed by a handler")
    return await _end_by_receipt(end, value, world, ctx)


async def _end_by_receipt(end: str, value: Any, world: "World", ctx: Context) -> Any:
    if not end.startswith("receipt"):
        return value
    connection = apsw.Connection(str(world.path))
    try:
        connection.execute("BEGIN IMMEDIATE")
        ctx.settle_within(connection, value)
        connection.execute("COMMIT")
    except LeaseLost:
        connection.execute("ROLLBACK")
        raise
    finally:
        connection.close()
    world.receipt_committed(ctx, value)
    if end.endswith("crash"):
        await _crash(world, "crashed between receipt and settle")
    if end.endswith("error"):
        raise RuntimeError("nothing can undo what was committed")
    return value


async def _crash(world: "World", fault: str) -> None:
    process = RUNNING_AS.get()
    if process is None or world.network.calm:
        return
    world.coverage.faults[fault] += 1
    world.crash(process, fault)
    await die()


async def _stay(seconds: float) -> None:
    """Wait, whoever asks to stop."""
    until = asyncio.get_running_loop().time() + seconds
    while (left := until - asyncio.get_running_loop().time()) > 0:
        try:
            await asyncio.sleep(left)
        except asyncio.CancelledError:
            continue


def script(chance: random.Random, good: float) -> dict[str, Any]:
    """A payload: steps to take, and how each run ends."""
    steps: list[Any] = []
    if chance.random() < 0.7:
        steps.append(round(chance.choice((0.05, 0.3, 1.0, 3.0, 9.0, 25.0)) * chance.uniform(0.5, 1.5), 3))
    if chance.random() < 0.3:
        steps.insert(0, chance.choice(("progress", "phase", "checkpoint")))
    if chance.random() < 0.15:
        steps += ["part", 0.5, "last part"]
    ends = [chance.choice(GOOD) if chance.random() < good else chance.choice(BAD) for _ in range(chance.randint(1, 4))]
    if ends[-1] == "snooze":
        # It would snooze for ever.
        ends.append("ok")
    return {"steps": steps, "ends": ends}


def task(chance: random.Random, **more: Any) -> TaskRequest:
    """A task by chance."""
    return TaskRequest(**_fields(chance, 0.55), **more)


def keyed(chance: random.Random) -> list[TaskRequest]:
    """Some tasks at once of a kind with limits by key, or whose keys take turns."""
    kind = chance.choice(KEYED)
    # One key for all of a call, or each its own.
    same = gated.key(chance) if chance.random() < 0.5 else None
    made = []
    for _ in range(chance.choice((1, 2, 3, 6))):
        payload = brief(chance) | {"key": same or gated.key(chance)}
        fields: dict[str, Any] = {"kind": kind, "payload": payload, "timeout": 8.0}
        if kind == "newest":
            payload["steps"].append(4.0)
        if chance.random() < 0.1:
            fields["delay"] = chance.choice((1.0, 6.0))
        if chance.random() < 0.1:
            fields["ttl"] = chance.choice((7.0, 20.0))
        if chance.random() < 0.1 and kind not in ("turns", "shared"):
            fields["priority"] = chance.choice((0, 9))
        made.append(TaskRequest(**fields))
    return made


def plain(chance: random.Random) -> TaskRequest:
    """A task that asks for nothing special."""
    return TaskRequest(kind="act", payload=brief(chance), timeout=5.0)


def brief(chance: random.Random) -> dict[str, Any]:
    """A payload of a handler that does not take long, so that others have their turn."""
    ends = [chance.choice(GOOD) if chance.random() < 0.75 else chance.choice(BAD) for _ in range(chance.randint(1, 2))]
    if ends[-1] == "snooze":
        ends.append("ok")
    return {"steps": [round(chance.choice((0.05, 0.5, 2.0)) * chance.uniform(0.5, 1.5), 3)], "ends": ends}


def only_one(chance: random.Random) -> list[TaskRequest]:
    """Unique tasks, now and then several of one key in one call."""
    made = []
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        key, said = unique.drawn(chance)
        payload = brief(chance) | {"key": key}
        if chance.random() < 0.3:
            # Others may have its key when it is to run again.
            payload["ends"] = ["fail", "ok"]
        if said.on_conflict == "replace":
            # The next one is to meet it at work, now and then.
            payload["steps"].append(3.0)
        delay = chance.choice((None, None, 2.0)) if said.on_conflict != "debounce" else None
        made.append(TaskRequest(kind="act", payload=payload, unique=said, delay=delay, timeout=5.0))
    return made


def _fields(chance: random.Random, good: float) -> dict[str, Any]:
    kind = chance.choice(KINDS) if chance.random() > 0.03 else "unknown"
    fields: dict[str, Any] = {"kind": kind, "payload": script(chance, good), "queue": chance.choice(QUEUES)}
    ends = fields["payload"]["ends"]
    if "hang" in ends or chance.random() < 0.2:
        fields["timeout"] = chance.choice((1.5, 4.0, 12.0))
    for field, share, values in (
        ("delay", 0.15, (0.5, 5.0, 30.0)),
        ("ttl", 0.15, (0.05, 1.0, 4.0, 20.0)),
        ("execution_limit", 0.15, (1.5, 6.0, 20.0)),
        ("priority", 0.2, (0, 9)),
        ("max_attempts", 0.15, (1, 2, 6)),
        ("max_losses", 0.1, (1, 2, 5)),
        ("on_loss", 0.1, ("retry", "count", "fail")),
    ):
        if chance.random() < share:
            fields[field] = chance.choice(values)
    if chance.random() < 0.18:
        fields.update(_narrow(chance))
    if fields.get("delay") and fields.get("ttl", 100.0) <= fields["delay"]:
        fields["ttl"] = fields["delay"] + 1.0
    return fields


def _narrow(chance: random.Random) -> dict[str, Any]:
    """A task that waits for a second attempt while its time runs out."""
    end = chance.choice(("snooze", "retry after"))
    limit = chance.choice(("ttl", "execution_limit")) if end == "retry after" else "execution_limit"
    seconds = chance.uniform(4.2, 5.0) if end == "retry after" else chance.uniform(3.2, 4.0)
    return {"payload": {"steps": [], "ends": [end, "ok"]}, limit: seconds, "delay": None, "timeout": 3.0}


def _special(chance: random.Random) -> dict[str, Any]:
    """What makes a task of a job wait for a limit, or want a key."""
    fields: dict[str, Any] = {"kind": "act", "payload": brief(chance), "timeout": 6.0}
    if chance.random() < 0.3:
        fields["unique"], fields["payload"]["key"] = unique.POLICIES["rejecting"], "rejecting"
    else:
        fields["kind"] = chance.choice([kind for kind in KEYED if kind not in gated.ALONE])
        fields["payload"]["key"] = gated.key(chance)
    return fields


def job(chance: random.Random, key: str | None) -> JobRequest:
    """A DAG by chance."""
    tasks: list[JobTaskRequest] = []
    # Handlers that never wait end in one turn of the loop, and are settled in one flush.
    at_once = chance.random() < 0.35
    for at in range(chance.randint(2, 7)):
        above = chance.sample(range(at), chance.randint(0, min(at, 3)))
        depends_on: list[str | Dependency] = [
            f"t{parent}"
            if chance.random() < 0.6
            else Dependency(name=f"t{parent}", on_failure=chance.choice(("fail", "continue", "cancel_job")))
            for parent in above
        ]
        fields = _fields(chance, 0.75)
        if at_once:
            fields |= {
                "payload": {"steps": [], "ends": ["ok"]},
                "kind": "act",
                "delay": None,
                "ttl": None,
                "queue": None,
            }
        elif chance.random() < 0.15:
            fields |= _special(chance)
        tasks.append(JobTaskRequest(name=f"t{at}", depends_on=depends_on, trigger=chance.choice(TRIGGERS), **fields))
    if not at_once:
        growing.grow_steps(chance, tasks)
    policy = chance.choice(("fail", "continue", "cancel_job"))
    return JobRequest(name="dag", tasks=tasks, on_failure=policy, idempotency_key=key)
