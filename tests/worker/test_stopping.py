"""How handlers are stopped: timeouts, deadlines, cancels, lost leases, and those that do not listen."""

import asyncio
from typing import Any

import pytest

from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import Failed, Stopped, Succeeded
from perdure.domain.task import Body
from perdure.store.wakeups import Topic
from perdure.worker.context import Context, SyncContext
from perdure.worker.registry import Registry
from worker.conftest import StartWorker, warm_up
from worker.scripted_source import ScriptedSource


class Ears:
    """A handler that notes when it began and when and how it was stopped."""

    def __init__(self, deaf_seconds: float = 0.0) -> None:
        self.began: list[float] = []
        self.stopped: list[float] = []
        self.running = asyncio.Event()
        self._deaf_seconds = deaf_seconds

    async def __call__(self) -> str:
        loop = asyncio.get_running_loop()
        self.began.append(loop.time())
        self.running.set()
        try:
            await asyncio.sleep(10_000)
        except asyncio.CancelledError:
            self.stopped.append(loop.time())
            if self._deaf_seconds:
                await asyncio.sleep(self._deaf_seconds)
                return "I did not listen"
            raise
        return "done"

    @property
    def ran_for(self) -> float:
        return self.stopped[-1] - self.began[-1]


@pytest.mark.parametrize("where", ["task", "kind", "worker"])
async def test_a_handler_is_stopped_at_its_timeout(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, where: str
) -> None:
    ears = Ears()
    registry.add("slow", ears, **({"timeout": 30.0} if where == "kind" else {}))
    lease = source.offer("slow", timeout_us=30 * SECOND_US if where == "task" else None)
    start_worker(default_timeout=30.0 if where == "worker" else 500.0)
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert (outcome.reason, outcome.permanent, outcome.error.type) == ("timeout", False, "TimedOut")
    assert ears.ran_for == pytest.approx(30, abs=0.01)


async def test_the_deadline_stops_a_handler_even_within_its_timeout(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    lease = source.offer("slow", timeout_us=60 * SECOND_US, deadline_us=20 * SECOND_US)
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert outcome.error.type == "DeadlinePassed"
    assert ears.ran_for == pytest.approx(20, abs=0.01)


async def test_a_value_that_comes_after_the_timeout_does_not_count(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("slow", Ears(deaf_seconds=2))
    lease = source.offer("slow", timeout_us=30 * SECOND_US)
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "timeout"


async def test_a_cancel_reaches_the_handler_within_a_control_interval(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    lease = source.offer("slow")
    start_worker()
    await ears.running.wait()
    await asyncio.sleep(7)
    asked = asyncio.get_running_loop().time()
    source.cancels[lease.hold.attempt_id] = 30 * SECOND_US
    assert await source.ended(lease) == Stopped(killed=False)
    assert ears.stopped[0] - asked <= 0.3


async def test_a_hint_of_control_makes_it_faster(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    lease = source.offer("slow")
    start_worker(control_interval=50)
    await ears.running.wait()
    await asyncio.sleep(7)
    asked = asyncio.get_running_loop().time()
    source.cancels[lease.hold.attempt_id] = 30 * SECOND_US
    source.hint(Topic.CONTROL)
    await source.ended(lease)
    assert ears.stopped[0] - asked <= 0.01


async def test_a_renewal_delivers_a_cancel_and_the_next_one_says_so(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears(deaf_seconds=8)
    registry.add("slow", ears)
    source.lease_us = 6 * SECOND_US
    lease = source.offer("slow")
    start_worker(control_interval=60)
    await ears.running.wait()
    source.cancels[lease.hold.attempt_id] = 30 * SECOND_US
    assert await source.ended(lease) == Stopped(killed=False)
    assert source.renewals[-1][0].delivered


async def test_a_cancel_while_it_waits_for_its_turn_ends_it_unstarted(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    start_worker(concurrency=1, prefetch=1)
    await warm_up(source, registry)
    source.offer("slow")
    second = source.offer("slow")
    await ears.running.wait()
    source.cancels[second.hold.attempt_id] = 30 * SECOND_US
    assert await source.ended(second) == Stopped(killed=False)
    assert len(ears.began) == 1


async def test_a_deaf_handler_is_left_to_itself_and_its_slot_goes_on(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def quick() -> str:
        return "quick"

    ears = Ears(deaf_seconds=1_000)
    registry.add("deaf", ears)
    registry.add("quick", quick)
    lease = source.offer("deaf")
    start_worker(concurrency=1, prefetch=0, stop_grace=10.0)
    await ears.running.wait()
    await asyncio.sleep(1)
    source.cancels[lease.hold.attempt_id] = 30 * SECOND_US
    assert await source.ended(lease) == Stopped(killed=True)
    assert asyncio.get_running_loop().time() - ears.stopped[0] == pytest.approx(10, abs=0.01)
    after = source.offer("quick")
    assert await source.ended(after, within=10) == Succeeded(Body(b'"quick"'))
    await asyncio.sleep(2_000)
    assert source.outcomes[lease.hold.task_id] == Stopped(killed=True)


async def test_a_cancel_is_answered_before_its_time_is_over(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears(deaf_seconds=1_000)
    registry.add("deaf", ears)
    lease = source.offer("deaf")
    start_worker(stop_grace=30.0)
    await ears.running.wait()
    source.cancels[lease.hold.attempt_id] = 5 * SECOND_US
    await source.ended(lease)
    assert asyncio.get_running_loop().time() - ears.stopped[0] <= 4.5


async def test_a_thread_sees_that_it_shall_stop(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    reasons: list[Any] = []

    def patient(*, ctx: SyncContext) -> str:
        while not ctx.wait_cancelled(0.01):
            pass
        reasons.append(ctx.stop_reason)
        return "stopped by myself"

    registry.add("patient", patient)
    lease = source.offer("patient", timeout_us=5 * SECOND_US)
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "timeout"
    assert reasons == ["timeout"]


async def test_a_lost_lease_stops_the_handler_and_nothing_is_settled(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    lease = source.offer("slow")
    worker = start_worker()
    await ears.running.wait()
    source.lost.add(lease.hold.task_id)
    await asyncio.sleep(30)
    assert len(ears.stopped) == 1
    assert worker.held == 0
    assert source.calls["settle"] == 0


async def test_a_task_beside_the_handler_can_wait_for_the_stop(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    seen: list[str | None] = []

    async def watched(*, ctx: Context) -> None:
        async def watch() -> None:
            await ctx.wait_cancelled()
            seen.append(ctx.stop_reason)

        watcher = asyncio.create_task(watch())
        try:
            await asyncio.sleep(1_000)
        finally:
            await watcher

    registry.add("watched", watched)
    lease = source.offer("watched", timeout_us=3 * SECOND_US)
    start_worker()
    await source.ended(lease)
    assert seen == ["timeout"]
