"""How a worker stops, and how it is recycled."""

import asyncio

import pytest

from perdure.domain.outcome import HandedBack, Succeeded
from perdure.store.ledger import WorkerOrder
from perdure.worker.registry import Registry
from worker.conftest import StartWorker, warm_up
from worker.scripted_source import ScriptedSource
from worker.test_leases import nap, now
from worker.test_stopping import Ears


async def test_a_draining_worker_claims_nothing_more(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    running = source.offer("nap", {"seconds": 10.0})
    worker = start_worker()
    await asyncio.sleep(1)
    worker.drain()
    claims = source.calls["claim"]
    source.offer("nap", {"seconds": 1.0})
    assert await worker.task == "drained"  # type: ignore[attr-defined]
    assert source.calls["claim"] == claims
    assert isinstance(source.outcomes[running.hold.task_id], Succeeded)
    assert source.left == [worker.id]


async def test_a_worker_that_drains_says_at_once_that_it_takes_nothing_more(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    source.offer("nap", {"seconds": 100.0})
    worker = start_worker(heartbeat=20.0, grace=200.0)
    await asyncio.sleep(25)
    assert source.capacities[-1] > 0
    worker.drain()
    await asyncio.sleep(1)
    assert source.capacities[-1] == 0


async def test_what_waits_goes_back_at_once_and_what_runs_gets_its_grace(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    worker = start_worker(concurrency=1, prefetch=1, grace=30.0)
    await warm_up(source, registry)
    running, waiting = source.offer("slow"), source.offer("slow")
    await ears.running.wait()
    began = now()
    worker.drain()
    assert await source.ended(waiting) == HandedBack()
    assert now() - began <= 0.1
    assert await source.ended(running) == HandedBack()
    assert now() - began == pytest.approx(30, abs=0.1)
    assert len(ears.stopped) == 1
    assert await worker.task == "drained"  # type: ignore[attr-defined]


async def test_a_handler_that_still_finishes_while_it_is_stopped_has_finished(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears(deaf_seconds=2)
    registry.add("slow", ears)
    lease = source.offer("slow")
    worker = start_worker(grace=5.0)
    await ears.running.wait()
    worker.drain()
    assert isinstance(await source.ended(lease), Succeeded)


async def test_a_deaf_handler_does_not_keep_a_draining_worker(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears(deaf_seconds=10_000)
    registry.add("slow", ears)
    lease = source.offer("slow")
    worker = start_worker(grace=5.0, stop_grace=10.0)
    await ears.running.wait()
    began = now()
    worker.drain()
    await worker.task  # type: ignore[attr-defined]
    assert source.outcomes[lease.hold.task_id] == HandedBack()
    assert now() - began <= 16


async def test_an_abandoned_worker_returns_at_once(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    source.offer("slow")
    worker = start_worker()
    await ears.running.wait()
    worker.drain()
    await asyncio.sleep(1)
    began = now()
    worker.abandon()
    assert await worker.task == "abandoned"  # type: ignore[attr-defined]
    assert now() - began <= 0.5
    assert source.outcomes == {}


async def test_an_answer_to_a_claim_that_comes_after_the_drain_is_handed_back(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    answer = asyncio.Event()
    claim = source.claim

    async def slow_claim(worker_id: str, count: int, *, wait: float = 0.0) -> list[object]:
        await answer.wait()
        return await claim(worker_id, count)

    source.claim = slow_claim  # type: ignore[method-assign, assignment]
    lease = source.offer("nap", {"seconds": 50.0})
    worker = start_worker()
    await asyncio.sleep(1)
    worker.drain()
    await asyncio.sleep(1)
    answer.set()
    assert await worker.task == "drained"  # type: ignore[attr-defined]
    assert source.outcomes[lease.hold.task_id] == HandedBack()


async def test_an_order_to_drain_is_a_drain(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    lease = source.offer("nap", {"seconds": 20.0})
    worker = start_worker(heartbeat=5.0)
    await asyncio.sleep(1)
    source.order = WorkerOrder.DRAIN
    assert await worker.task == "drained"  # type: ignore[attr-defined]
    assert isinstance(source.outcomes[lease.hold.task_id], Succeeded)


@pytest.mark.parametrize("limit", [1, 7])
async def test_a_worker_is_recycled_after_its_number_of_tasks(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, limit: int
) -> None:
    registry.add("nap", nap)
    for _ in range(10):
        source.offer("nap", {"seconds": 1.0})
    worker = start_worker(concurrency=2, prefetch=1, max_tasks=limit)
    assert await worker.task == "recycled"  # type: ignore[attr-defined]
    assert [type(each) for each in source.outcomes.values()] == [Succeeded] * limit
    assert len(source.queue) == 10 - limit


async def test_a_worker_can_stop_when_there_is_nothing_left(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    leases = [source.offer("nap", {"seconds": 1.0}) for _ in range(7)]
    worker = start_worker(concurrency=2, stop_when_idle=True)
    assert await worker.task == "idle"  # type: ignore[attr-defined]
    assert len(source.outcomes) == len(leases)
