"""An idle worker gets what its own event loop submits with that commit: no hint, and no claim of its own."""

import asyncio
from typing import Any

import apsw
import pytest

from backends.sqlite.test_writing import Faulty
from perdure.domain.attempt import Lease
from perdure.domain.states import TaskState
from perdure.engine.engine import Engine
from perdure.errors import StoreFailed
from worker.test_on_the_engine import Site
from worker.test_on_the_engine import site as site

NEVER = 3_000.0
"""Seconds between looks that nothing asked for: nothing in these tests is found by one."""


class Claims:
    """The engine as a source, whose claims are counted."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def claim(self, worker_id: str, count: int, *, wait: float = 0.0) -> list[Lease]:
        self.asked += 1
        return await self._engine.claim(worker_id, count, wait=wait)


async def idle(site: Site, **settings: Any) -> Claims:
    """A worker of "echo" that has found nothing and rests."""

    async def echo(text: str) -> str:
        return text

    site.registry.add("echo", echo)
    source = Claims(site.engine)
    await site.start_worker(source, poll=NEVER, **settings)
    await asyncio.sleep(1.0)
    source.asked = 0
    return source


async def test_one_task_after_the_other_runs_without_a_claim(site: Site) -> None:
    source = await idle(site)
    for n in range(5):
        ended = await site.ended(await site.submit("echo", payload={"text": f"{n}"}), 10.0)
        assert ended.result is not None
        assert ended.result.data == f'"{n}"'.encode()
    assert source.asked == 0


async def test_what_is_more_than_it_stands_by_for_is_claimed_at_once(site: Site) -> None:
    source = await idle(site, concurrency=1, prefetch=0)
    tasks = [await site.submit("echo", payload={"text": f"{n}"}) for n in range(20)]
    for task in tasks:
        await site.ended(task, 10.0)
    assert source.asked > 0


async def test_a_commit_of_unknown_fate_is_followed_by_a_claim(site: Site) -> None:
    source = await idle(site)
    commits = site.engine._store.writer.commits  # type: ignore[attr-defined]
    commits._connection = Faulty(commits.connected(), apsw.IOError("disk I/O error"), "COMMIT")
    with pytest.raises(StoreFailed):
        await site.submit("echo", payload={"text": "lost"})
    await asyncio.sleep(1.0)
    assert source.asked == 1
    await site.ended(await site.submit("echo", payload={"text": "kept"}), 10.0)
    assert source.asked == 1


async def test_a_worker_that_was_told_to_drain_takes_nothing_more(site: Site) -> None:
    await idle(site)
    ((worker, running),) = site.workers
    worker.drain()
    task = await site.submit("echo", payload={"text": "late"})
    await running
    assert (await site.view(task)).state is TaskState.QUEUED


async def test_a_worker_runs_no_more_tasks_than_it_may(site: Site) -> None:
    await idle(site, max_tasks=2)
    ((worker, running),) = site.workers
    tasks = [await site.submit("echo", payload={"text": f"{n}"}) for n in range(3)]
    await running
    assert worker.claimed == 2
    states = [(await site.view(task)).state for task in tasks]
    assert states == [TaskState.SUCCEEDED, TaskState.SUCCEEDED, TaskState.QUEUED]
