"""Breakers of kinds, as a program says them: a kind that fails is left alone, and tried again."""

import asyncio
import contextlib
import logging
from pathlib import Path

import pytest

import perdure
from perdure.domain.breaker import BreakerEvent, BreakerState


@pytest.mark.parametrize(
    ("said", "field"),
    [
        ({"share": 0}, "share"),
        ({"share": 1.5}, "share"),
        ({"failures": 0}, "failures"),
        ({"min_attempts": True}, "min_attempts"),
        ({"window": 0.5}, "window"),
        ({"open_for": 1e9}, "open_for"),
        ({"probes": 0}, "probes"),
    ],
)
def test_what_is_out_of_range_is_refused_with_its_field(said: dict[str, float], field: str) -> None:
    with pytest.raises(perdure.Invalid) as refused:
        perdure.Breaker(**said)  # type: ignore[arg-type]
    assert refused.value.fields["field"] == field


def test_what_is_no_breaker_is_refused_where_it_is_written() -> None:
    with pytest.raises(perdure.Misuse, match="breaker"):
        perdure.App(":memory:").task("x", breaker=3)  # type: ignore[call-overload]


async def test_a_kind_that_fails_is_left_alone_until_somebody_resets_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = perdure.App(str(tmp_path / "breakers.db"))
    broken = True

    @app.task("charge", max_attempts=1, breaker=perdure.Breaker(failures=3, open_for=3600))
    async def charge(number: int) -> int:
        if broken:
            raise ConnectionError("the bank is away")
        return number

    async with app:
        first = await app.submit_many([charge.call(number) for number in range(3)])
        with caplog.at_level(logging.INFO, logger="perdure.breakers"):
            async with app.worker(concurrency=1):
                await perdure.wait_all(first, timeout=60)
                (view,) = await app.flow.breakers()
                assert (view.kind, view.state, view.last_event) == (
                    "charge",
                    BreakerState.OPEN,
                    BreakerEvent.TOO_MANY_FAILED,
                )
                broken = False
                later = await app.submit(charge, 7)
                assert [each.sort for each in await later.why() if each.until_us] == ["breaker"]
                assert (await app.flow.reset("charge")).state is BreakerState.CLOSED
                assert await later.result(timeout=60) == 7
    opened, closed = [each.getMessage() for each in caplog.records if each.name == "perdure.breakers"]
    assert "breaker of kind 'charge' (organization default) opened, 3 of 3 attempts failed" in opened
    assert "`perdure kind reset charge` closes it" in opened
    assert "closed, by hand" in closed


async def test_it_is_tripped_by_hand_and_only_where_there_is_one(tmp_path: Path) -> None:
    app = perdure.App(str(tmp_path / "breakers.db"))

    @app.task("guarded", breaker=perdure.Breaker())
    async def guarded() -> None: ...

    @app.task("plain")
    async def plain() -> None: ...

    async with app:
        for task in (guarded, plain):
            await app.submit(task)
        view = await app.flow.trip("guarded", 60)
        assert (view.state, view.trips, view.actor) == (BreakerState.OPEN, 1, app.principal.name)
        with pytest.raises(perdure.Invalid, match="has no breaker"):
            await app.flow.trip("plain")
        with pytest.raises(perdure.NotFound):
            await app.flow.reset("nobody")
        with pytest.raises(perdure.Invalid, match="open_for"):
            await app.flow.trip("guarded", 0)


async def test_queues_kinds_and_the_organization_are_paused_and_limited(tmp_path: Path) -> None:
    app = perdure.App(str(tmp_path / "flow.db"))

    @app.task("work")
    async def work() -> None: ...

    async with app:
        handle = await app.submit(work)
        await app.flow.pause_queue("default")
        await app.flow.pause_kind("work")
        await app.flow.pause_organization()
        told = {each.sort for each in await handle.why()}
        assert {"queue_paused", "kind_paused", "organization_paused"} <= told
        await app.flow.resume_queue("default")
        await app.flow.resume_kind("work")
        await app.flow.resume_organization()
        assert {each.sort for each in await handle.why()} == {"no_worker"}
        policy = await app.flow.limit_queue("default", concurrency=5, rate=10, per=2)
        assert (policy["concurrency"], policy["rate"], policy["per"]) == (5, 10, 2)
        policy = await app.flow.limit_queue("default", concurrency=None)
        assert (policy["concurrency"], policy["rate"]) == (None, 10)
        assert (await app.flow.limit_organization(weight=3))["weight"] == 3
        with pytest.raises(perdure.Invalid, match="concurrency"):
            await app.flow.limit_queue("default", concurrency=0)


def test_code_without_await_has_the_same(tmp_path: Path) -> None:
    app = perdure.App(str(tmp_path / "flow.db"))

    @app.task("work", breaker=perdure.Breaker())
    def work() -> None: ...

    with app.sync as sync:
        sync.submit(work)
        sync.flow.pause_queue("default")
        sync.flow.resume_queue("default")
        sync.flow.pause_kind("work")
        sync.flow.resume_kind("work")
        sync.flow.pause_organization()
        sync.flow.resume_organization()
        assert sync.flow.limit_queue("default", rate=3)["rate"] == 3
        assert sync.flow.limit_organization(concurrency=3)["concurrency"] == 3
        assert sync.flow.trip("work").state is BreakerState.OPEN
        assert sync.flow.reset("work").state is BreakerState.CLOSED
        assert [each.kind for each in sync.flow.breakers()] == ["work"]


async def test_workers_of_several_processes_worth_open_it_once_and_share_its_probes(tmp_path: Path) -> None:
    store = str(tmp_path / "race.db")
    running = started = 0
    # Four have failed, what eight slots held fails in one settlement, and the slots have been filled again meanwhile.
    before = 4 + 8 + 8
    probed = asyncio.Event()
    apps = [perdure.App(store) for _ in range(2)]

    async def fails(number: int) -> None:
        nonlocal running, started
        running += 1
        started += 1
        if started > before + 2:
            probed.set()
        await asyncio.sleep(0)
        running -= 1
        raise ConnectionError("away")

    breaker = perdure.Breaker(failures=5, open_for=1, probes=2)
    tasks = [app.task("race", max_attempts=1, breaker=breaker)(fails) for app in apps]
    async with contextlib.AsyncExitStack() as stack:
        for app in apps:
            await stack.enter_async_context(app)
        handles = await apps[0].submit_many([tasks[0].call(number) for number in range(100)])
        for app in apps:
            for _ in range(2):
                await stack.enter_async_context(app.worker(concurrency=2, prefetch=0))
        await perdure.wait_any(handles, timeout=60)
        # Probes fail and open it again and again: whatever opens it, at most two start each second.
        await asyncio.wait_for(probed.wait(), 60)
        (view,) = await apps[0].flow.breakers()
    # Two probes for each time that it opened.
    assert started <= before + 2 * view.trips
    assert view.last_event is BreakerEvent.PROBE_FAILED
