"""Schedules of an app: beside their tasks, and by the program itself."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from perdure import App, Context, Invalid, Misuse, SyncContext
from perdure.app.job_handle import JobHandle


async def test_a_schedule_beside_its_task_is_declared_by_a_worker_and_fires(app: App) -> None:
    ran: asyncio.Queue[str] = asyncio.Queue()

    @app.schedule(every=1, name="beat", payload={"word": "tick"})
    @app.task("beat.once")
    async def beat(word: str) -> str:
        await ran.put(word)
        return word

    async with app.worker():
        assert await asyncio.wait_for(ran.get(), 30) == "tick"
        view = await app.schedules.get("beat")
    assert view is not None
    assert view.definition == {"every": 1, "task": {"kind": "beat.once", "payload": {"word": "tick"}}}
    before = view.etag
    async with app.worker():
        again = await app.schedules.get("beat")
    assert again is not None
    assert again.etag == before


async def test_a_handler_knows_the_instant_that_it_is_for(app: App) -> None:
    seen: list[tuple[str | None, datetime | None]] = []

    @app.task("report")
    async def report(*, ctx: Context) -> None:
        seen.append((ctx.schedule, ctx.instant))

    @app.task("plain")
    def plain(*, ctx: SyncContext) -> None:
        seen.append((ctx.schedule, ctx.instant))

    await app.schedules.put("daily", report, "0 3 * * *")
    await app.schedules.backfill("daily", datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC))
    async with app.worker():
        await (await app.submit(plain)).result(30)
        await asyncio.wait_for(_until(lambda: len(seen) == 2), 30)
    assert sorted(seen, key=repr) == [("daily", datetime(2026, 3, 1, 3, tzinfo=UTC)), (None, None)]


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


async def test_what_cannot_be_a_schedule_is_told_where_it_is_written(app: App) -> None:
    @app.schedule("0 3 * * *", time_zone="Europe/Berlin")
    @app.task("report")
    async def report(month: str = "now") -> str:
        return month

    with pytest.raises(Misuse, match="declared already"):
        app.schedule("@daily")(report)
    with pytest.raises(Misuse, match=r"above @app\.task"):
        app.schedule("@daily", name="x")(lambda: None)  # type: ignore[type-var]
    with pytest.raises(Misuse, match="no option 'ever'"):
        app.schedule(ever=5, name="x")(report)  # type: ignore[call-arg]
    for bad in ({"every": 0}, {"time_zone": "Mars/Olympus"}, {"overlap": "no"}):
        with pytest.raises(Invalid):
            app.schedule("@daily" if "every" not in bad else None, name="x", **bad)(report)  # type: ignore[misc]

    @app.task("needs")
    async def needs(n: int) -> int:
        return n

    with pytest.raises(Invalid, match="schedule 'needs': "):
        app.schedule("@daily")(needs)
    with pytest.raises(Invalid, match="schedule 'nightly': the payload does not fit 'needs'") as refused:
        app.schedule("@daily", name="nightly", payload={"n": "many"})(needs)
    assert refused.value.fields["field"] == "n"
    with pytest.raises(Invalid, match=r"schedule 'nightly': .*Mars"):
        app.schedule("@daily", name="nightly", payload={"n": 1}, time_zone="Mars/Olympus")(needs)


async def test_a_schedule_that_is_refused_is_named(app: App) -> None:
    with pytest.raises(Invalid, match="schedule 'b': every") as refused:
        await app.schedules.apply("s", {"a": {"every": 5, "task": {"kind": "k"}}, "b": {"every": "x"}})
    assert refused.value.fields["schedule"] == "b"
    with pytest.raises(Invalid, match="schedule 'c': "):
        await app.schedules.apply("s", {"c": {"cron": "61 * * * *", "task": {"kind": "k"}}})

    @app.task("strict")
    async def strict(n: int) -> int:
        return n

    async with app:
        await app.submit(strict, n=1)

    other = App(app.settings.store)

    @other.schedule("@daily", name="nightly", payload={"m": 1})
    @other.task("strict")
    async def older(m: int) -> int:
        return m

    system = await other.system()
    with pytest.raises(Invalid, match="schedule 'nightly': payload is not what kind 'strict' takes"):
        await other.schedules.declare_on(system.engine.schedules, other.principal)
    await other.close()


async def test_a_program_makes_changes_and_removes_schedules(app: App) -> None:
    @app.task("report")
    async def report(month: str) -> str:
        return month

    made = await app.schedules.put("monthly", report.call(month="next"), "0 0 1 * *", time_zone="Europe/Berlin")
    assert made.created
    assert not (await app.schedules.put("monthly", report.call(month="next"), "@monthly")).created
    assert [each.name for each in await app.schedules.all()] == ["monthly"]
    first, second = await app.schedules.preview("monthly", 2, datetime(2026, 1, 15, tzinfo=UTC))
    assert (first.month, second.month) == (2, 3)
    assert (await app.schedules.pause("monthly")).paused
    assert not (await app.schedules.resume("monthly")).paused
    handle = await app.schedules.trigger("monthly")
    now = datetime.now(UTC)
    filled = await app.schedules.backfill("monthly", now - timedelta(days=70), now)
    assert len(filled) in (2, 3)
    async with app.worker():
        assert await handle.result(30) == "next"
    assert len(await app.schedules.fires("monthly")) == len(filled) + 1
    assert await app.schedules.delete("monthly")
    assert await app.schedules.get("monthly") is None


async def test_a_job_is_scheduled_as_it_was_built(app: App) -> None:
    @app.task("step")
    async def step(n: int = 1) -> int:
        return n + 1

    job = app.job("nightly")
    first = job.add(step, n=1)
    job.add(step, n=first.result, name="second")
    await app.schedules.put("nightly", job, "@daily")
    handle = await app.schedules.trigger("nightly")
    assert isinstance(handle, JobHandle)
    async with app.worker():
        assert (await handle.result(30))["second"] == 3


async def test_a_set_converges_by_the_app(app: App) -> None:
    steps = await app.schedules.apply("crew", {"a": {"every": 60, "task": {"kind": "k"}}})
    assert [(each.name, each.action) for each in steps] == [("a", "create")]
    assert [each.name for each in await app.schedules.all("crew")] == ["a"]
    await app.schedules.apply("crew", {})
    assert await app.schedules.all() == []


def test_all_of_it_works_without_await(app: App) -> None:
    @app.task("report")
    def report() -> str:
        return "done"

    schedules = app.sync.schedules
    assert schedules.put("daily", report, "@daily").created
    assert schedules.get("daily") is not None
    assert len(schedules.all()) == 1
    assert schedules.pause("daily").paused
    assert not schedules.resume("daily").paused
    assert schedules.trigger("daily").status().kind == "report"
    assert len(schedules.preview("daily", 3)) == 3
    now = datetime.now(UTC)
    assert len(schedules.backfill("daily", now - timedelta(days=2), now)) in (1, 2)
    assert len(schedules.fires("daily")) >= 2
    assert schedules.apply("crew", {}) == []
    assert schedules.delete("daily")
    app.sync.close()
