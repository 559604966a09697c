"""A worker killed in the middle of a drain: another goes on, and the store is recounted."""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import perdure

PATIENCE = 180.0


def make_app(path: str) -> perdure.App:
    """An app whose handler leaves one line for each run, outside of the store."""
    app = perdure.App(path)
    ledger = os.open(f"{path}.effects", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    @app.task("mark", lease=5)
    async def mark(number: int) -> None:
        os.write(ledger, b"%d\n" % number)

    return app


async def _work(path: str) -> None:
    await make_app(path).run(concurrency=100)


async def recount(folder: Path, tasks: int) -> dict[str, float]:
    """Kill the worker when about half is done; then every task must be there, ended once, and run at least once."""
    path = str(folder / "kill.db")
    async with make_app(path) as app:
        for first in range(0, tasks, 1000):
            await app.submit_many([app_call(app, number) for number in range(first, min(first + 1000, tasks))])
        first_worker = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.kill", path)
        await _until(lambda: _effects(path) >= tasks // 2)
        first_worker.send_signal(signal.SIGKILL)
        await first_worker.wait()
        killed, runs_before = time.monotonic(), _effects(path)
        second = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.kill", path)
        views = (await app.operations()).views
        while True:
            counts = {row.state: row.tasks for row in (await views.overview("default")).counts}
            if counts.get("succeeded", 0) == tasks:
                break
            if time.monotonic() - killed > PATIENCE:
                raise SystemExit(f"after {PATIENCE:.0f} s: {counts}")
            await asyncio.sleep(0.05)
        recovered = time.monotonic() - killed
        second.send_signal(signal.SIGTERM)
        await second.wait()
    ran = [int(line) for line in Path(f"{path}.effects").read_text().split()]
    return {
        "tasks": tasks,
        "runs when killed": runs_before,
        "succeeded": counts["succeeded"],
        "never run": tasks - len(set(ran)),
        "run twice": len(ran) - len(set(ran)),
        "seconds to the end after the kill": round(recovered, 2),
    }


def app_call(app: perdure.App, number: int) -> perdure.Call[None]:
    """One task to submit."""
    return app.call("mark", number=number)


def _effects(path: str) -> int:
    try:
        return Path(f"{path}.effects").read_bytes().count(b"\n")
    except FileNotFoundError:
        return 0


async def _until(condition: object) -> None:
    begin = time.monotonic()
    while not condition():  # type: ignore[operator]
        if time.monotonic() - begin > PATIENCE:
            raise SystemExit("the worker did not get half way in time")
        await asyncio.sleep(0.01)


if __name__ == "__main__":
    asyncio.run(_work(sys.argv[1]))
