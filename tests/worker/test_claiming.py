"""When a worker asks for work, and for how much."""

import asyncio

import pytest

from perdure.domain.attempt import Lease
from perdure.domain.outcome import HandedBack
from perdure.errors import InvariantBroken
from perdure.store.wakeups import Topic
from perdure.worker.claiming import Leaving
from perdure.worker.pace import POLL_MAX_SECONDS
from perdure.worker.registry import Registry
from worker.conftest import StartWorker, warm_up
from worker.scripted_source import HintBox, ScriptedSource
from worker.test_leases import nap, now


async def test_a_worker_asks_for_its_slots_and_ahead_once_it_knows_that_handlers_are_short(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    start_worker(concurrency=4, prefetch=2)
    await warm_up(source, registry)
    source.offer("nap", {"seconds": 5.0})
    await asyncio.sleep(0.1)
    assert [asked for _, asked, _ in source.claims] == [4, 6]
    await asyncio.sleep(10)
    for _ in range(20):
        source.offer("nap", {"seconds": 20.0})
    await asyncio.sleep(50)
    source.claims.clear()
    await asyncio.sleep(50)
    assert all(asked <= 4 for _, asked, _ in source.claims)


async def test_what_waits_too_long_behind_long_handlers_is_handed_back(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    worker = start_worker(concurrency=2, prefetch=2)
    await warm_up(source, registry)
    leases = [source.offer("nap", {"seconds": 100.0}) for _ in range(4)]
    await asyncio.sleep(1)
    assert worker.held == 4
    await asyncio.sleep(4.5)
    assert worker.held == 2
    assert [source.outcomes.get(each.hold.task_id) for each in leases] == [None, None, HandedBack(), HandedBack()]


async def test_no_more_handlers_run_at_once_than_there_are_slots(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    running = most = 0

    async def count() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(3)
        running -= 1

    registry.add("count", count)
    leases = [source.offer("count") for _ in range(20)]
    worker = start_worker(concurrency=3, prefetch=2)
    held = 0
    while leases[-1].hold.task_id not in source.outcomes:
        held = max(held, worker.held)
        await asyncio.sleep(0.5)
    assert most == 3
    assert held <= 5


async def test_a_hint_brings_work_at_once(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    start_worker(poll=1_000)
    await asyncio.sleep(10)
    began = now()
    await source.ended(source.offer("nap", {"seconds": 1.0}))
    assert now() - began == pytest.approx(1, abs=0.01)


async def test_hints_come_again_after_an_answer_that_nobody_understands(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    understood = HintBox.wait

    async def garbled(box: HintBox, timeout: float) -> Topic:
        monkeypatch.setattr(HintBox, "wait", understood)
        raise InvariantBroken("the gateway gave an answer that this version cannot read")

    monkeypatch.setattr(HintBox, "wait", garbled)
    registry.add("nap", nap)
    start_worker(poll=1_000)
    await asyncio.sleep(1_010)
    began = now()
    await source.ended(source.offer("nap", {"seconds": 1.0}))
    assert now() - began == pytest.approx(1, abs=0.01)


async def test_without_hints_the_poll_brings_it(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    start_worker(poll=2.0)
    await asyncio.sleep(10)
    began = now()
    await source.ended(source.offer("nap", {"seconds": 1.0}, hint=False))
    assert now() - began <= 1 + POLL_MAX_SECONDS


async def test_an_idle_worker_asks_seldom(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    start_worker(poll=2.0)
    await asyncio.sleep(600)
    assert 600 / POLL_MAX_SECONDS <= source.calls["claim"] <= 600 / POLL_MAX_SECONDS * 1.5 + 5
    assert source.calls["control"] == source.calls["renew"] == 0


async def test_a_full_line_is_worked_off_without_polling(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def noop() -> None:
        return None

    registry.add("noop", noop)
    leases = [source.offer("noop", hint=False) for _ in range(500)]
    start_worker(concurrency=10, poll=100.0)
    began = now()
    await source.ended(leases[-1])
    assert now() - began <= 0.01
    assert len(source.settles) < 50


async def test_outcomes_of_one_turn_travel_together(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def noop() -> None:
        return None

    registry.add("noop", noop)
    start_worker(concurrency=4, prefetch=4)
    await warm_up(source, registry)
    leases = [source.offer("noop") for _ in range(8)]
    await source.ended(leases[-1])
    assert [len(each) for each in source.settles] == [1, 8]


async def test_more_slots_can_be_had_while_it_runs_and_fewer(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    for _ in range(40):
        source.offer("nap", {"seconds": 10.0})
    worker = start_worker(concurrency=2, prefetch=0)
    await asyncio.sleep(1)
    assert worker.held == 2
    worker.resize(6)
    await asyncio.sleep(1)
    assert worker.held == 6
    worker.resize(1)
    await asyncio.sleep(20)
    assert worker.held == 1


async def test_a_kind_without_a_handler_is_handed_back(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    lease = source.offer("unknown")
    start_worker()
    assert await source.ended(lease) == HandedBack()


async def test_what_it_says_of_itself(source: ScriptedSource, registry: Registry, start_worker: StartWorker) -> None:
    registry.add("nap", nap, queue="naps")
    start_worker(concurrency=3, prefetch=2, capabilities=("gpu",), build="b7", name="desk")
    await asyncio.sleep(1)
    (info,) = source.registered
    assert (info.name, info.build, info.kinds, info.queues) == ("desk", "b7", ("nap",), ("default", "naps"))
    assert info.capabilities == ("gpu",)
    assert info.capacity == 10


async def test_a_source_that_is_away_and_is_back_is_told_once_each(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, caplog: pytest.LogCaptureFixture
) -> None:
    async def short() -> None: ...

    registry.add("short", short)
    caplog.set_level("INFO", "perdure.worker")
    start_worker()
    await asyncio.sleep(1)
    source.away = True
    source.boxes[0].hint(Topic.READY)
    await asyncio.sleep(10)
    assert caplog.text.count("work cannot be claimed for now") == 1
    source.away = False
    await source.ended(source.offer("short"))
    assert caplog.text.count("work can be claimed again") == 1
    assert caplog.text.count("work cannot be claimed for now") == 1


async def test_what_a_claim_brought_begins_before_the_next_claim_is_sent(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where claims wait at the source: the next one is sent at once."""
    claims_at_start: list[int] = []
    claim = source.claim

    async def waiting(worker_id: str, count: int, *, wait: float = 0.0) -> list[Lease]:
        given = await claim(worker_id, count)
        if not given:
            await asyncio.sleep(wait)
        return given

    async def note() -> None:
        claims_at_start.append(len(source.claims))

    registry.add("note", note)
    monkeypatch.setattr(source, "claim", waiting)
    lease = source.offer("note")
    start_worker(concurrency=4, claim_wait=10.0)
    await source.ended(lease)
    assert claims_at_start == [1]


async def test_a_wait_for_a_claim_ends_when_the_worker_shall_end() -> None:
    leaving = Leaving()
    ended: list[str] = []

    async def call() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")
        return "never"

    waiting = asyncio.create_task(leaving.unless_set(call()))
    await asyncio.sleep(0)
    leaving.set()
    leaving.set()
    assert await waiting is None
    assert ended == ["cancelled"]
    assert await leaving.unless_set(call()) is None
    assert ended == ["cancelled"]


async def test_a_claim_that_fails_by_a_timeout_of_its_own_says_so() -> None:
    async def call() -> None:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        await Leaving().unless_set(call())


async def test_whoever_cancels_the_wait_for_a_claim_is_heard() -> None:
    waiting = asyncio.create_task(Leaving().unless_set(asyncio.sleep(3600)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
