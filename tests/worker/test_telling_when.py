"""A worker says when a handler began and when it was told to stop, so that the history is right."""

import asyncio

import pytest

from perdure.domain.attempt import Renewal
from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import Failed, HandedBack, Outcome, Stopped, Succeeded
from perdure.worker.context import Context
from perdure.worker.registry import Registry
from worker.conftest import StartWorker, warm_up
from worker.scripted_source import ScriptedSource
from worker.test_stopping import Ears


def settled(source: ScriptedSource) -> Outcome:
    ((_, outcome),) = source.settles[-1]
    return outcome


async def test_an_outcome_tells_how_long_ago_its_handler_began(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def short(fails: bool) -> None:
        await asyncio.sleep(0.3)
        if fails:
            raise ValueError("no")

    registry.add("short", short)
    start_worker()
    for fails, kind in ((False, Succeeded), (True, Failed)):
        await source.ended(source.offer("short", {"fails": fails}))
        assert isinstance(settled(source), kind)
        assert settled(source).ran_us == pytest.approx(0.3 * SECOND_US, abs=2_000)


async def test_while_the_source_is_away_the_time_goes_on(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def short() -> None:
        await asyncio.sleep(0.3)
        source.away = True

    registry.add("short", short)
    lease = source.offer("short")
    start_worker()
    began = asyncio.get_running_loop().time()
    await asyncio.sleep(10)
    source.away = False
    await source.ended(lease)
    assert settled(source).ran_us == pytest.approx((asyncio.get_running_loop().time() - began) * SECOND_US, abs=50_000)


async def test_a_start_is_told_once(source: ScriptedSource, registry: Registry, start_worker: StartWorker) -> None:
    async def long(*, ctx: Context) -> None:
        await asyncio.sleep(0.2)
        ctx.progress(1)
        await asyncio.sleep(3)

    registry.add("long", long)
    lease = source.offer("long")
    start_worker()
    await source.ended(lease)
    assert [each.ran_us for each in source.reports] == [pytest.approx(0.4 * SECOND_US, abs=10_000)]
    assert settled(source).ran_us is None


async def test_a_renewal_tells_how_long_ago_its_handler_began(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("slow", Ears())
    source.offer("slow")
    start_worker()
    await asyncio.sleep(2)
    ((renewal,),) = source.renewals
    assert renewal == Renewal(renewal.hold, True, ran_us=renewal.ran_us)
    assert renewal.ran_us == pytest.approx(0.5 * SECOND_US, abs=10_000)


async def test_what_never_began_has_no_start(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    worker = start_worker(concurrency=1, prefetch=1)
    await warm_up(source, registry)
    source.offer("slow")
    waiting = source.offer("slow")
    await ears.running.wait()
    worker.drain()
    assert await source.ended(waiting) == HandedBack()
    assert settled(source).ran_us is None


async def test_the_end_of_a_cancelled_handler_tells_when_it_was_told(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears(deaf_seconds=0.2)
    registry.add("slow", ears)
    lease = source.offer("slow")
    start_worker()
    await ears.running.wait()
    await asyncio.sleep(5)
    source.cancels[lease.hold.attempt_id] = 30 * SECOND_US
    await source.ended(lease)
    outcome = settled(source)
    assert isinstance(outcome, Stopped)
    assert outcome.told_us == pytest.approx(0.2 * SECOND_US, abs=10_000)


async def test_a_handler_that_takes_its_time_to_stop_is_said_to_be_told_at_once(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears(deaf_seconds=8)
    registry.add("slow", ears)
    lease = source.offer("slow")
    start_worker()
    await ears.running.wait()
    await asyncio.sleep(5)
    source.cancels[lease.hold.attempt_id] = 30 * SECOND_US
    await asyncio.sleep(1)
    ((renewal,),) = source.renewals[1:]
    assert renewal.delivered
    assert renewal.told_us == pytest.approx(0.5 * SECOND_US, abs=10_000)
    await source.ended(lease)
    outcome = settled(source)
    assert isinstance(outcome, Stopped)
    assert outcome.told_us is None


async def test_a_timeout_counts_from_the_start_of_a_handler_that_waited_for_its_turn(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    start_worker(concurrency=1, prefetch=1)
    await warm_up(source, registry)
    first = source.offer("slow", timeout_us=3 * SECOND_US)
    second = source.offer("slow", timeout_us=3 * SECOND_US)
    for lease in (first, second):
        outcome = await source.ended(lease)
        assert isinstance(outcome, Failed)
        assert outcome.reason == "timeout"
    assert [end - start for start, end in zip(ears.began, ears.stopped, strict=True)] == pytest.approx([3, 3], abs=0.01)
