"""The app of these cases, and the worker process that runs it: `python -m chaos.app STORE EFFECTS OPTIONS`."""

import asyncio
import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

import perdure
from chaos import faults
from chaos.effects import Effects
from perdure.cli.problems import tell

LIFE_SECONDS = 240
"""A process of these cases ends itself after so long, whatever happens to whoever started it."""
MEMORY_BYTES = 96 * 1024 * 1024
"""How much more than it has the hungry handler is allowed."""
MEETING_SECONDS = 3.0


def make_app(store: str, effects: Effects) -> perdure.App:
    """The app on a store, with handlers that tell the effect ledger what they do."""
    app = perdure.App(store)
    _add_calm_handlers(app, effects)
    _add_handlers_of_turns(app, effects)
    _add_poisonous_handlers(app, effects)
    _add_family_handlers(app, effects)
    return app


def _add_calm_handlers(app: perdure.App, effects: Effects) -> None:
    @app.task("nap")
    async def nap(number: int, seconds: float = 0.0, filling: str = "", *, ctx: perdure.Context) -> int:
        effects.note("start", ctx, number)
        await asyncio.sleep(seconds)
        effects.note("end", ctx, number)
        return number

    @app.task("busy")
    async def busy(number: int, *, ctx: perdure.Context) -> int:
        """Uses every verb that a handler can: progress, parts, checkpoints, results of parents, a renewal, an error."""
        effects.note("start", ctx, number)
        ctx.progress(1, 2)
        await ctx.part({"number": number}, key="one")
        await ctx.checkpoint(number)
        await asyncio.sleep(0.6)
        if number % 3 == 0 and ctx.attempt == 1:
            raise RuntimeError("the first attempt fails")
        await ctx.part({"number": number}, key="last", final=True)
        effects.note("end", ctx, number)
        return number


def _add_handlers_of_turns(app: perdure.App, effects: Effects) -> None:
    def turn_of(ctx: perdure.Context | perdure.SyncContext) -> int:
        return len({each.attempt for each in effects.read("start") if each.task == ctx.task_id}) - 1

    @app.task("turns")
    async def turns(number: int, seconds: list[float], ways: list[str], *, ctx: perdure.Context) -> str:
        """Each run takes the next of `seconds` and of `ways`: ok, fail, fail later, grip (hold the GIL), report."""
        effects.note("start", ctx, number)
        turn = turn_of(ctx)
        if ways[turn] == "grip":
            ctypes.PyDLL(None).usleep(round(seconds[turn] * 1_000_000))
        else:
            await asyncio.sleep(seconds[turn])
        if ways[turn] == "report":
            try:
                await ctx.part({"turn": turn}, key="part")
                await ctx.checkpoint(turn)
            except perdure.LeaseLost:
                effects.note("refused", ctx, number)
        effects.note("end", ctx, number)
        if ways[turn] == "fail":
            raise perdure.Fail("this turn fails")
        if ways[turn] == "fail later":
            raise RuntimeError("this turn fails and is worth another one")
        return f"turn {turn}"

    @app.task("stubborn")
    def stubborn(number: int, seconds: float, *, ctx: perdure.SyncContext) -> str:
        effects.note("start", ctx, number)
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            time.sleep(0.05)
        effects.note("end", ctx, number)
        return "never to be taken"


def _add_poisonous_handlers(app: perdure.App, effects: Effects) -> None:
    @app.task("poison")
    async def poison(number: int, way: str, *, ctx: perdure.Context) -> None:
        effects.note("start", ctx, number)
        if way == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if way == "segfault":
            signal.signal(signal.SIGSEGV, signal.SIG_DFL)
            ctypes.string_at(0)
        if way == "memory":
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * os.sysconf("SC_PAGE_SIZE") + MEMORY_BYTES
            resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
            eaten = []
            while True:
                eaten.append(bytearray(1024 * 1024))


def _add_family_handlers(app: perdure.App, effects: Effects) -> None:
    @app.task("meet")
    async def meet(number: int, folder: str, side: str, other: str, fails: bool, *, ctx: perdure.Context) -> str:
        """Ends at the same moment as the other last parent, if that one comes in time."""
        effects.note("start", ctx, number)
        Path(folder, f"{number}-{side}").touch()
        until = time.monotonic() + MEETING_SECONDS
        while not Path(folder, f"{number}-{other}").exists() and time.monotonic() < until:
            await asyncio.sleep(0.002)
        effects.note("met" if time.monotonic() < until else "missed", ctx, number)
        if fails:
            raise perdure.Fail("this parent fails")
        return side

    @app.task("probe")
    async def probe(number: int, *, ctx: perdure.Context) -> None:
        effects.note("start", ctx, number)


def die_with_parent() -> None:
    """Have this process killed when the one that started it dies, and after its life is over."""
    signal.alarm(LIFE_SECONDS)
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


async def _work() -> None:
    store, ledger, options = sys.argv[1:4]
    chosen = json.loads(options)
    if "queues" in chosen:
        chosen["queues"] = tuple(chosen["queues"])
    await make_app(store, Effects(Path(ledger))).run(**chosen)


if __name__ == "__main__":
    die_with_parent()
    faults.do_as_told()
    try:
        asyncio.run(_work())
    except perdure.PerdureError as error:
        # As the command says it: one line, and a code that tells a store at fault from work that failed.
        sys.exit(tell(error, as_json=False))
