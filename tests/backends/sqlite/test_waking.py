"""Hints: kept while nobody waits, one for many, and never two for one commit."""

import asyncio
import threading
from pathlib import Path

import pytest

from backends.sqlite.notes import ADDING, make_table
from perdure.store.hub import Hub
from perdure.store.sqlite.store import SqliteStore
from perdure.store.wakeups import Topic

LONG = 30.0
SHORT = 0.3


async def test_a_hint_wakes_who_waits_for_its_topic():
    hub = Hub()
    ready, ended = hub.subscribe(Topic.READY), hub.subscribe(Topic.ENDED)
    waiting = asyncio.create_task(ready.wait(LONG))
    await asyncio.sleep(0)
    hub.announce(Topic.READY)

    assert await waiting == Topic.READY
    assert await ended.wait(0.0) == Topic(0)


async def test_hints_that_come_while_nobody_waits_are_kept_as_one():
    hub = Hub()
    waiter = hub.subscribe(Topic.ANY)
    for topic in (Topic.READY, Topic.READY, Topic.ENDED):
        hub.announce(topic)

    assert await waiter.wait(LONG) == Topic.READY | Topic.ENDED
    assert await waiter.wait(0.0) == Topic(0)


async def test_hints_come_from_any_thread():
    hub = Hub()
    waiter = hub.subscribe(Topic.ANY)
    waiting = asyncio.create_task(waiter.wait(LONG))
    await asyncio.sleep(0)
    thread = threading.Thread(target=hub.announce, args=(Topic.CONTROL,))
    thread.start()

    assert await waiting == Topic.CONTROL
    thread.join()


async def test_a_cancelled_wait_loses_no_hint():
    hub = Hub()
    waiter = hub.subscribe(Topic.ANY)
    waiting = asyncio.create_task(waiter.wait(LONG))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    hub.announce(Topic.ENDED)

    assert await waiter.wait(LONG) == Topic.ENDED


async def test_who_has_closed_is_not_waited_for():
    hub = Hub()
    waiter = hub.subscribe(Topic.ANY)
    assert hub.watched
    waiter.close()
    waiter.close()
    assert not hub.watched


async def test_a_loop_that_is_gone_is_forgotten():
    hub = Hub()

    async def leave_waiting() -> None:
        waiting = asyncio.ensure_future(hub.subscribe(Topic.ANY).wait(LONG))
        await asyncio.sleep(0)
        waiting.cancel()

    await asyncio.to_thread(asyncio.run, leave_waiting())
    hub.announce(Topic.ANY)
    here = hub.subscribe(Topic.ANY)
    hub.announce(Topic.READY)
    assert await here.wait(LONG) == Topic.READY


async def test_a_commit_announces_its_topics(store: SqliteStore):
    waiter = store.wakeups.subscribe(Topic.READY)
    await waiter.wait(0.0)
    await store.writer.gather(ADDING, ["a"])
    assert await waiter.wait(LONG) == Topic.READY
    waiter.close()


@pytest.fixture
async def other(threaded: SqliteStore, tmp_path: Path):
    """Another store on the same file, as another process would have it."""
    opened = await SqliteStore.open(threaded.path, inline=True, synchronous="NORMAL")
    await make_table(opened)
    yield opened
    await opened.close()


async def settled(waiter) -> None:
    """Take the hints of what happened before."""
    while await waiter.wait(SHORT):
        pass


async def test_a_commit_of_another_process_wakes_everybody(threaded: SqliteStore, other: SqliteStore):
    waiter = threaded.wakeups.subscribe(Topic.ENDED)
    await settled(waiter)
    await other.writer.gather(ADDING, ["from afar"])
    assert await waiter.wait(LONG) == Topic.ENDED
    waiter.close()


async def test_own_commits_are_not_taken_for_foreign_ones(threaded: SqliteStore):
    waiter = threaded.wakeups.subscribe(Topic.ENDED)
    await settled(waiter)
    for _ in range(5):
        await threaded.writer.gather(ADDING, ["our own, which announces READY only"])
    assert await waiter.wait(SHORT) == Topic(0)
    waiter.close()


async def test_a_foreign_commit_amid_own_ones_is_noticed(threaded: SqliteStore, other: SqliteStore):
    waiter = threaded.wakeups.subscribe(Topic.ENDED)
    await settled(waiter)
    await threaded.writer.gather(ADDING, ["own"])
    await other.writer.gather(ADDING, ["from afar"])
    await threaded.writer.gather(ADDING, ["own again"])
    assert await waiter.wait(LONG) == Topic.ENDED
    waiter.close()
