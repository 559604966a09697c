"""Plain handlers in threads: what they return after they shall stop, by whether they could know."""

import asyncio
import threading
from typing import Any

import pytest

from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import HandedBack, Snoozed, Stopped, Succeeded
from perdure.domain.task import Body
from perdure.worker.context import SyncContext
from perdure.worker.registry import Registry
from perdure.worker.verdicts import Snooze
from virtual_time import VirtualLoop
from worker.conftest import StartWorker
from worker.scripted_source import ScriptedSource


class Thread:
    """A plain handler that goes on when a test says so, and then returns `value`."""

    def __init__(self, value: Any = "all of it", looks: str | None = None) -> None:
        self.value = value
        self.looks = looks
        self.began = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, *, ctx: SyncContext) -> Any:
        self.began.set()
        self.go_on.wait(10)
        if self.looks == "cancelled":
            assert ctx.cancelled
        elif self.looks == "reason":
            assert ctx.stop_reason is not None
        elif self.looks == "wait":
            assert ctx.wait_cancelled(0)
        return self.value


async def until(event: threading.Event) -> None:
    """Wait for a thread, in real time. From then on its being busy holds virtual time up for moments only."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.thread_patience = 0.001
    for _ in range(2_000):
        if await asyncio.to_thread(event.wait, 0.005):
            return
    raise AssertionError("the thread did not come that far")


@pytest.mark.parametrize("looks", ["cancelled", "reason", "wait"])
async def test_what_a_thread_returns_after_it_saw_that_its_worker_ends_is_no_result(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, looks: str
) -> None:
    thread = Thread(None, looks)
    registry.add("plain", thread)
    lease = source.offer("plain")
    worker = start_worker(grace=0.0)
    await until(thread.began)
    worker.drain()
    await asyncio.sleep(0.1)
    thread.go_on.set()
    assert await source.ended(lease) == HandedBack()


async def test_a_verdict_counts_even_then(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    thread = Thread(Snooze(60), "cancelled")
    registry.add("plain", thread)
    lease = source.offer("plain")
    worker = start_worker(grace=0.0)
    await until(thread.began)
    worker.drain()
    await asyncio.sleep(0.1)
    thread.go_on.set()
    assert await source.ended(lease) == Snoozed(60 * SECOND_US)


async def test_a_thread_that_finishes_while_its_worker_ends_has_finished(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    thread = Thread()
    registry.add("plain", thread)
    lease = source.offer("plain")
    worker = start_worker(grace=0.0)
    await until(thread.began)
    worker.drain()
    await asyncio.sleep(0.1)
    thread.go_on.set()
    assert await source.ended(lease) == Succeeded(Body(b'"all of it"'))


async def test_a_cancelled_threads_value_does_not_count(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    thread = Thread()
    registry.add("plain", thread)
    lease = source.offer("plain")
    start_worker()
    await until(thread.began)
    source.cancels[lease.hold.attempt_id] = 30 * SECOND_US
    await asyncio.sleep(1)
    thread.go_on.set()
    assert await source.ended(lease) == Stopped()


@pytest.mark.parametrize("left_alone", [False, True])
async def test_a_result_of_a_thread_that_lost_its_lease_unknowingly_is_told_once(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, left_alone: bool
) -> None:
    thread = Thread()
    registry.add("plain", thread)
    lease = source.offer("plain")
    worker = start_worker(stop_grace=5.0)
    await until(thread.began)
    source.lost.add(lease.hold.task_id)
    await asyncio.sleep(10 if left_alone else 3)
    assert worker.held == (0 if left_alone else 1)
    thread.go_on.set()
    for _ in range(2_000):
        await asyncio.to_thread(threading.Event().wait, 0.002)
        if source.settles:
            break
    assert source.settles == [[(lease.hold, Succeeded(Body(b'"all of it"')))]]
    await asyncio.sleep(60)
    assert len(source.settles) == 1
    assert worker.held == 0


async def test_what_a_thread_returns_after_it_saw_that_its_lease_is_lost_is_no_result(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    thread = Thread(None, "cancelled")
    registry.add("plain", thread)
    lease = source.offer("plain")
    worker = start_worker()
    await until(thread.began)
    source.lost.add(lease.hold.task_id)
    await asyncio.sleep(3)
    thread.go_on.set()
    while worker.held:
        await asyncio.to_thread(threading.Event().wait, 0.002)
    await asyncio.sleep(60)
    assert source.settles == []
