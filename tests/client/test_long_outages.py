"""The long tier: gateways killed for half a minute under load from worker processes, and an outage beyond the lease."""

import asyncio
import collections
import os
import random
import sys

import pytest

import perdure
from client.serving import GatewayProcess
from perdure.domain.states import TaskState

SHOP = """
import asyncio, os, perdure
app = perdure.App()

@app.task("work", lease=5)
async def work(number: int) -> int:
    with open("ran", "a") as file:
        file.write(f"{number}\\n")
    await asyncio.sleep(0.05)
    return number * 2
"""


async def worker_process(folder, url):
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "perdure", "worker", "shop:app", "--concurrency", "10", "--grace", "5"),
        cwd=folder,
        env={**os.environ, "PERDURE_STORE": url, "PERDURE_LOG_LEVEL": "error"},
    )


@pytest.mark.slow
async def test_thirty_seconds_of_kills_lose_nothing_and_repeat_only_what_was_lost(tmp_path):
    (tmp_path / "shop.py").write_text(SHOP)
    chance = random.Random(11)
    handles = []
    async with GatewayProcess(tmp_path / "killed.db") as gateway, perdure.App(gateway.url) as app:
        workers = [await worker_process(tmp_path, gateway.url) for _ in range(2)]
        stopping = asyncio.Event()

        async def submit(caller):
            number = caller
            while not stopping.is_set():
                handles.append((number, await app.submit("work", number=number, idempotency_key=str(number))))
                number += 4
                await asyncio.sleep(0.02)

        submitting = [asyncio.create_task(submit(caller)) for caller in range(4)]
        for _ in range(8):
            await asyncio.sleep(chance.uniform(2, 4))
            await gateway.kill()
            await asyncio.sleep(chance.uniform(0, 1))
            await gateway.start()
        stopping.set()
        async with asyncio.timeout(60):
            await asyncio.gather(*submitting)
            results = await asyncio.gather(*(handle.result(60) for _, handle in handles))
        assert results == [number * 2 for number, _ in handles]
        overview = await (await app.operations()).views.overview("default")
        assert (overview.tasks, overview.results) == (len(handles), len(handles))
        for worker in workers:
            worker.terminate()
            assert await worker.wait() == 0
        ran = collections.Counter((tmp_path / "ran").read_text().split())
        views = {number: await handle.status() for number, handle in handles}
        attempts = {number: len(await handle.attempts()) for number, handle in handles if ran[str(number)] > 1}
        assert all(view.state == TaskState.SUCCEEDED for view in views.values())
        # What ran twice had two claims: nothing runs without one.
        assert all(ran[str(number)] <= claims for number, claims in attempts.items())
        print(f"{len(handles)} tasks, {sum(ran.values())} runs, {sum(view.losses for view in views.values())} losses")


@pytest.mark.slow
async def test_a_result_that_no_lease_covers_any_more_is_not_taken_and_the_task_runs_again(tmp_path):
    runs = []
    async with GatewayProcess(tmp_path / "away.db") as gateway, perdure.App(gateway.url) as app:
        begun = asyncio.Event()

        @app.task("work", lease=5)
        async def work() -> int:
            runs.append(1)
            begun.set()
            await asyncio.sleep(1)
            return len(runs)

        handle = await app.submit(work)
        async with app.worker(), asyncio.timeout(90):
            await begun.wait()
            await gateway.kill()
            await asyncio.sleep(8)
            await gateway.start()
            assert await handle.result() == 2
        first, second = await handle.attempts()
        assert (first.state, second.state) == ("lost", "succeeded")
