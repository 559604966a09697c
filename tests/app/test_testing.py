"""The testing kit: what users' tests rely on."""

import asyncio

import pytest

import perdure
from perdure import testing
from perdure.testing import SyncTestApp, TestApp


@pytest.fixture
def app(tmp_path):
    app = perdure.App(tmp_path / "unused.db")

    @app.task("charge", retry=perdure.Retry(3, backoff="fixed", base=30, jitter=0))
    async def charge(order: int, *, ctx: perdure.Context) -> str:
        if ctx.attempt == 1:
            raise ConnectionError("the bank is closed")
        return f"charged {order} at attempt {ctx.attempt}"

    @app.task("echo")
    def echo(text: str) -> str:
        return text

    return app


async def test_work_that_is_due_is_done_without_a_worker_being_started(app):
    async with TestApp(app) as t:
        handle = await app.submit("echo", text="hello")
        assert await t.run_until_idle() == 1
        assert await handle.result(timeout=0) == "hello"


async def test_a_retry_waits_until_time_is_advanced(app):
    async with TestApp(app) as t:
        handle = await app.submit("charge", order=7)
        await t.run_until_idle()
        assert (await handle.status()).state == "retrying"
        await t.advance(29)
        assert (await handle.status()).state == "retrying"
        await t.advance(2)
        assert await handle.result(timeout=0) == "charged 7 at attempt 2"


async def test_who_waits_before_anything_was_run_is_told_what_to_call(app, monkeypatch):
    monkeypatch.setattr(testing, "STILL_SECONDS", 0.01)
    async with TestApp(app) as t:
        handle = await app.submit("echo", text="hello")
        with pytest.raises(perdure.Misuse, match=r"run_until_idle\(\) or advance\(seconds\)"):
            await handle.result()
        with app.job("one") as job:
            job.add("echo", text="a")
        with pytest.raises(perdure.Misuse, match="nothing will run"):
            await (await job.submit()).result(timeout=30)
        with pytest.raises(perdure.WaitTimedOut):
            await handle.result(timeout=0)
        await t.run_until_idle()
        assert await handle.result() == "hello"


async def test_who_waits_on_a_store_that_fails_is_told_of_that(app):
    async def stands_still(seconds: float) -> bool:
        raise perdure.StoreUnreachable("the store is closed")

    async with TestApp(app):
        handle = await app.submit("echo", text="hello")
        app.patience._stands_still = stands_still
        with pytest.raises(perdure.StoreUnreachable, match="the store is closed"):
            await handle.result()


async def test_who_waits_while_the_test_works_gets_the_result(app, monkeypatch):
    monkeypatch.setattr(testing, "STILL_SECONDS", 0.01)
    looks = 0

    async def stands_still(seconds: float) -> bool:
        nonlocal looks
        looks += 1
        return await still(seconds)

    @app.task("outer")
    async def outer() -> str:
        while looks < 3:
            await asyncio.sleep(0.001)
        return "done"

    async with TestApp(app) as t:
        still = t._stands_still
        app.patience._stands_still = stands_still
        handle = await app.submit("outer")
        result, attempts = await asyncio.gather(handle.result(), t.run_until_idle())
        assert (result, attempts) == ("done", 1)
        inner = await app.submit("echo", text="by a worker of its own")
        waiting = asyncio.create_task(inner.result())
        async with app.worker():
            assert await waiting == "by a worker of its own"


async def test_schedules_above_tasks_are_there_and_fire_when_time_passes(app):
    @app.schedule("0 * * * *", name="hourly", payload={"text": "tick"})
    @app.task("beat")
    async def beat(text: str) -> str:
        return text

    async with TestApp(app) as t:
        [first, second] = await app.schedules.preview("hourly", 2)
        assert (first.hour, second.hour, first.minute) == (9, 10, 0)
        assert await t.advance(2 * 3600) == 2
        t.assert_submitted("beat", times=2, text="tick")
    async with TestApp(app, schedules=False) as t:
        assert await app.schedules.all() == []
        assert await t.advance(3600) == 0


@pytest.mark.parametrize("seconds", [-5, float("nan"), float("inf")])
async def test_time_does_not_go_back(app, seconds):
    async with TestApp(app) as t:
        with pytest.raises(perdure.Misuse, match="seconds, 0 or more"):
            await t.advance(seconds)


async def test_a_task_due_in_thirty_days_runs_in_no_time(app):
    async with TestApp(app) as t:
        handle = await app.submit("echo", text="later", delay=30 * 86400)
        await t.advance(29 * 86400)
        assert (await handle.status()).state == "pending"
        await t.advance(2 * 86400)
        assert await handle.result(timeout=0) == "later"
        view = await handle.status()
        assert view.finished_us - view.created_us == 30 * 86400 * 1_000_000


async def test_a_ttl_passes_in_virtual_time(app):
    async with TestApp(app) as t:
        handle = await app.submit("unknown.kind", x=1, ttl=60)
        await t.advance(59)
        assert (await handle.status()).state == "queued"
        await t.advance(2)
        assert (await handle.status()).state == "expired"


async def test_jobs_run_to_their_end(app):
    async with TestApp(app) as t:
        with app.job("chain") as job:
            first = job.add("echo", text="a")
            job.add("echo", text=first.result)
        handle = await job.submit()
        await t.run_until_idle()
        assert await handle.result(timeout=0) == {"echo-1": "a", "echo-2": "a"}


async def test_what_was_submitted_can_be_asserted(app):
    async with TestApp(app) as t:
        await app.submit("echo", text="a")
        await app.submit("echo", text="b", queue="bulk")
        assert [each.payload for each in t.submitted("echo")] == [{"text": "a"}, {"text": "b"}]
        [found] = t.assert_submitted("echo", text="b")
        assert found.view.queue == "bulk"
        t.assert_submitted("echo", times=2)
        t.assert_submitted("charge", times=0)
        with pytest.raises(AssertionError, match="expected at least one submitted 'echo' with \\(text='c'\\), found 0"):
            t.assert_submitted("echo", text="c")


async def test_ids_are_the_same_in_every_run(app):
    async def first_id() -> str:
        async with TestApp(app, seed=3):
            return (await app.submit("echo", text="a")).id

    assert await first_id() == await first_id()


async def test_the_app_gets_its_own_store_back(app, tmp_path):
    async with TestApp(app):
        await app.submit("echo", text="a")
    async with app:
        assert (tmp_path / "unused.db").exists()


async def test_work_without_end_is_reported(app):
    @app.task("again")
    async def again() -> None:
        await app.submit("again")

    async with TestApp(app) as t:
        await app.submit("again")
        with pytest.raises(perdure.Misuse, match="still not idle"):
            await t.run_until_idle(limit=30)


def test_plain_code_is_tested_without_await(app, tmp_path):
    with SyncTestApp(app) as t:
        handle = app.sync.submit("charge", order=7)
        t.assert_submitted("charge", order=7, times=1)
        assert t.run_until_idle() == 1
        assert handle.status().state == "retrying"
        assert t.advance(30) == 1
        assert handle.result(timeout=0) == "charged 7 at attempt 2"
        assert [each.id for each in t.submitted()] == [handle.id]
        with pytest.raises(AssertionError, match="found 0"):
            t.assert_submitted("echo")
    assert not (tmp_path / "unused.db").exists()
    assert app.sync.submit("echo", text="for real").status().state == "queued"
    app.sync.close()


async def test_the_sync_side_of_an_async_test_is_refused(app):
    async with TestApp(app):
        with pytest.raises(perdure.Misuse, match="use SyncTestApp"):
            await asyncio.to_thread(app.sync.submit, "echo", text="x")
        await asyncio.to_thread(app.sync.close)
