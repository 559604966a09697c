"""Workers in virtual time, on a scripted source."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from perdure.ambient import Chance, Ids
from perdure.worker.loop import Ending, Worker
from perdure.worker.registry import Registry
from perdure.worker.worker_settings import WorkerSettings
from virtual_time import VirtualClock, VirtualLoop
from worker.scripted_source import ScriptedSource

StartWorker = Callable[..., Worker]


async def warm_up(source: ScriptedSource, registry: Registry) -> None:
    """Let a worker see one short handler, after which it may fetch ahead."""

    async def short() -> None:
        return None

    if "warm-up" not in registry:
        registry.add("warm-up", short)
    await source.ended(source.offer("warm-up"))


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> dict[str, Any]:
    """Every test here runs in virtual time."""
    return {"virtual": VirtualLoop}


@pytest.fixture
async def source() -> ScriptedSource:
    return ScriptedSource()


@pytest.fixture
def registry() -> Registry:
    return Registry()


@pytest.fixture
async def start_worker(source: ScriptedSource, registry: Registry) -> AsyncIterator[StartWorker]:
    """Starts workers on the scripted source; those that still work at the end of the test are drained."""
    started: list[tuple[Worker, asyncio.Task[Ending]]] = []

    def start(**settings: Any) -> Worker:
        clock = VirtualClock(asyncio.get_running_loop())
        worker = Worker(
            source,
            registry,
            clock=clock,
            ids=Ids(clock),
            chance=Chance(1),
            settings=WorkerSettings(**{"keeper_thread": False, "name": "w", **settings}),
        )
        task = asyncio.create_task(worker.run())
        started.append((worker, task))
        worker.task = task  # type: ignore[attr-defined]
        return worker

    yield start
    source.away = False
    for worker, task in started:
        if not task.done():
            worker.abandon()
            with contextlib.suppress(asyncio.CancelledError):
                await task
