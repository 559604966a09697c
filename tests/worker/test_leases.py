"""How leases are kept, and what happens when they cannot be."""

import asyncio

import pytest

from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import Succeeded
from perdure.store.ledger import WorkerOrder
from perdure.worker.context import Context
from perdure.worker.registry import Registry
from worker.conftest import StartWorker, warm_up
from worker.scripted_source import ScriptedSource
from worker.test_stopping import Ears


async def nap(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return seconds


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_all_leases_are_renewed_in_one_call_at_a_third_of_the_shortest(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    began = now()
    for _ in range(5):
        source.offer("nap", {"seconds": 100.0}, lease_us=60 * SECOND_US)
    short = source.offer("nap", {"seconds": 50.0}, lease_us=30 * SECOND_US)
    source.lease_us = 30 * SECOND_US
    start_worker()
    await source.ended(short)
    assert [len(each) for each in source.renewals] == [6] * len(source.renewals)
    gaps = [at - began for at in source.renewed_at]
    assert gaps == pytest.approx([0.5, 10.5, 20.5, 30.5, 40.5], abs=0.1)


async def test_a_handler_that_runs_is_soon_reported_as_started_and_one_that_waits_is_not(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    start_worker(concurrency=1, prefetch=1)
    await warm_up(source, registry)
    for _ in range(2):
        source.offer("nap", {"seconds": 100.0})
    await asyncio.sleep(0.6)
    assert [each.started for each in source.renewals[0]] == [True, False]
    await asyncio.sleep(4)
    assert len(source.renewals) == 1


async def test_short_handlers_cost_no_renewal(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    leases = [source.offer("nap", {"seconds": 0.2}) for _ in range(50)]
    start_worker()
    for lease in leases:
        await source.ended(lease)
    assert source.calls["renew"] == 0


async def test_a_lease_that_cannot_be_renewed_stops_its_handler_before_it_ends(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    source.lease_us = 20 * SECOND_US
    source.offer("slow")
    worker = start_worker()
    await ears.running.wait()
    claimed = now()
    source.away = True
    await asyncio.sleep(60)
    assert 15 <= ears.stopped[0] - claimed <= 18.1
    assert worker.held == 0
    assert source.calls["settle"] == 0


async def test_a_source_that_hangs_does_not_keep_a_handler_past_its_lease(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    source.lease_us = 20 * SECOND_US
    source.offer("slow")

    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    source.renew = hang  # type: ignore[method-assign, assignment]
    start_worker()
    await ears.running.wait()
    claimed = now()
    await asyncio.sleep(60)
    assert 15 <= ears.stopped[0] - claimed <= 18.1


async def test_a_source_that_is_slow_for_a_moment_when_a_lease_runs_out_is_not_said_to_be_away(
    source: ScriptedSource,
    registry: Registry,
    start_worker: StartWorker,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    source.lease_us = 2 * SECOND_US
    source.offer("slow")

    def slowed(verb: str, seconds: float) -> None:
        answer = getattr(source, verb)

        async def later(*given: object, **options: object) -> object:
            found = await answer(*given, **options)
            await asyncio.sleep(seconds)
            return found

        monkeypatch.setattr(source, verb, later)

    slowed("claim", 1.7)
    slowed("renew", 0.2)
    slowed("control", 0.2)
    start_worker()
    await ears.running.wait()
    await asyncio.sleep(10)
    assert [each.getMessage() for each in caplog.records if "away" in each.getMessage()] == []


async def test_a_lease_that_runs_out_while_a_call_hangs_stops_its_handler_on_time(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    source.lease_us = 2 * SECOND_US

    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    start_worker()
    await warm_up(source, registry)
    source.renew = source.control = hang  # type: ignore[method-assign, assignment]
    source.offer("slow")
    claimed = now()
    await ears.running.wait()
    await asyncio.sleep(10)
    assert 1.5 <= ears.stopped[0] - claimed <= 1.9


async def test_an_outage_shorter_than_the_lease_is_survived(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    lease = source.offer("nap", {"seconds": 100.0})
    start_worker()
    await asyncio.sleep(5)
    source.away = True
    await asyncio.sleep(45)
    source.away = False
    assert isinstance(await source.ended(lease), Succeeded)


async def test_an_outcome_is_delivered_when_the_source_is_back_within_the_lease(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    lease = source.offer("nap", {"seconds": 5.0})
    start_worker()
    await asyncio.sleep(1)
    source.away = True
    await asyncio.sleep(40)
    source.away = False
    assert isinstance(await source.ended(lease, within=10), Succeeded)
    assert len(source.settles) == 1


async def test_results_that_no_lease_covers_are_told_once_and_the_worker_goes_on(
    source: ScriptedSource,
    registry: Registry,
    start_worker: StartWorker,
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry.add("nap", nap)
    late = {source.offer("nap", {"seconds": 5.0}).hold.task_id for _ in range(3)}
    worker = start_worker()
    await asyncio.sleep(1)
    source.away = True
    await asyncio.sleep(120)
    assert worker.held == 0
    assert [each.message for each in caplog.records if "too late" in each.message] == [
        "3 outcomes come too late: their leases ran out while the source was away"
        " (the scripted source is away (settle))"
    ]
    source.away = False
    source.lost |= late
    later = source.offer("nap", {"seconds": 1.0})
    assert isinstance(await source.ended(later, within=30), Succeeded)
    await asyncio.sleep(60)
    told = [hold.task_id for call in source.settles for hold, _ in call]
    assert sorted(told) == sorted({*late, later.hold.task_id})


async def test_failures_that_no_lease_covers_are_dropped(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def fail() -> None:
        await asyncio.sleep(5)
        raise ValueError("nobody will know")

    registry.add("fail", fail)
    source.offer("fail")
    worker = start_worker()
    await asyncio.sleep(1)
    source.away = True
    await asyncio.sleep(120)
    assert worker.held == 0
    source.away = False
    await asyncio.sleep(60)
    assert source.settles == []


async def test_parts_wait_for_the_source_as_long_as_the_lease_lasts(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def slice_it(*, ctx: Context) -> bool:
        await asyncio.sleep(1)
        return await ctx.part({"piece": 1}, key="one")

    registry.add("slice", slice_it)
    lease = source.offer("slice")
    start_worker()
    await asyncio.sleep(0.5)
    source.away = True
    await asyncio.sleep(20)
    assert source.reports == []
    source.away = False
    assert isinstance(await source.ended(lease, within=10), Succeeded)
    assert len(source.reports) == 1


async def test_an_idle_worker_resumes_by_itself_after_an_outage(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    source.away = True
    start_worker()
    await asyncio.sleep(300)
    asked = source.calls["register"]
    assert 50 <= asked <= 150
    source.away = False
    lease = source.offer("nap", {"seconds": 1.0})
    assert isinstance(await source.ended(lease, within=10), Succeeded)


async def test_heartbeats_go_on_and_orders_are_obeyed(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    worker = start_worker(heartbeat=10.0)
    await asyncio.sleep(35)
    assert source.calls["heartbeat"] == 3
    source.order = WorkerOrder.PAUSE
    await asyncio.sleep(10)
    claims = source.calls["claim"]
    lease = source.offer("nap", {"seconds": 1.0})
    await asyncio.sleep(30)
    assert source.calls["claim"] == claims
    assert worker.order is WorkerOrder.PAUSE
    source.order = WorkerOrder.WORK
    assert isinstance(await source.ended(lease, within=12), Succeeded)


async def test_a_revoked_worker_stops_everything_and_ends(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    ears = Ears()
    registry.add("slow", ears)
    source.offer("slow")
    worker = start_worker(heartbeat=5.0)
    await ears.running.wait()
    source.order = source.order_of_registered = WorkerOrder.REVOKE
    assert await worker.task == "revoked"  # type: ignore[attr-defined]
    assert len(ears.stopped) == 1
    assert source.calls["settle"] == 0


async def test_a_worker_that_the_store_forgot_registers_again(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    start_worker(heartbeat=5.0)
    await asyncio.sleep(1)
    source.order = WorkerOrder.REVOKE
    await asyncio.sleep(5)
    source.order = WorkerOrder.WORK
    assert len(source.registered) == 2
    lease = source.offer("nap", {"seconds": 1.0})
    assert isinstance(await source.ended(lease, within=10), Succeeded)
