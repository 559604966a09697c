"""Waiting for tasks, and what is told of those that failed."""

import asyncio
import logging
import weakref
from dataclasses import dataclass

import msgspec
import pydantic
import pytest

import perdure
from perdure.app import patience
from perdure.testing import TestApp


async def test_a_result_has_the_type_that_the_handler_declares(app):
    @dataclass
    class Point:
        x: int

    class Line(msgspec.Struct):
        points: list[Point]

    class Area(pydantic.BaseModel):
        lines: int

    @app.task("point")
    async def point(x: int) -> Point:
        return Point(x)

    @app.task("line")
    def line(points: list[Point]) -> Line:
        return Line(points)

    @app.task("area")
    def area(line: Line) -> Area:
        return Area(lines=len(line.points))

    async with app, app.worker():
        made = await (await app.submit(point, x=1)).result(10)
        drawn = await (await app.submit(line, points=[made])).result(10)
        assert (made, drawn) == (Point(1), Line([Point(1)]))
        assert await (await app.submit(area, line=drawn)).result(10) == Area(lines=1)


async def test_verdicts_are_no_part_of_a_results_type(app):
    @dataclass
    class Point:
        x: int

    @app.task("patient")
    async def patient(*, ctx: perdure.Context) -> Point | perdure.Snooze | perdure.Cancel:
        seen = ctx.checkpointed
        await ctx.checkpoint(1)
        return Point(1) if seen else perdure.Snooze(0)

    async with app, app.worker():
        assert await (await app.submit(patient)).result(10) == Point(1)


async def test_a_failure_tells_state_reason_and_error(app):
    async with app, app.worker():
        handle = await app.submit("fail", text="no way")
        with pytest.raises(perdure.TaskFailed, match=r"dead_lettered .*ValueError: no way") as failed:
            await handle.result(10)
    error = failed.value
    assert (error.task_id, error.state, error.reason) == (handle.id, "dead_lettered", "exhausted")
    assert error.error.type == "ValueError"
    assert "raise ValueError(text)" in error.error.traceback


async def test_a_wait_that_is_over_leaves_the_task_alone(app):
    async with app:
        handle = await app.submit("add", left=1)
        with pytest.raises(perdure.WaitTimedOut):
            await handle.result(timeout=0)
        assert (await handle.status()).state == "queued"


async def test_a_cancel_ends_what_runs_and_what_waits(app):
    async with app, app.worker():
        running = await app.submit("hang")
        waiting = await app.submit("add", left=1, delay=60)
        while (await running.status()).state != "running":
            await asyncio.sleep(0.01)
        assert (await running.cancel("enough", note="for us")).answer == "cancelling"
        assert (await waiting.cancel()).answer == "cancelled"
        assert await running.wait(10) == "cancelled"
        with pytest.raises(perdure.TaskFailed, match="cancelled"):
            await waiting.result(10)
        assert (await waiting.cancel()).answer == "already"
        assert [event.type for event in await running.events()][-1] == "ended"


async def test_an_unknown_task_is_not_found(app):
    async with app:
        handle = app.handle("0198c5a4-7f3e-7abc-8def-0123456789ab")
        for ask in (handle.status, handle.cancel, handle.events, handle.attempts, handle.parts, handle.logs):
            with pytest.raises(perdure.NotFound):
                await ask()
        with pytest.raises(perdure.NotFound):
            await handle.result(10)
        with pytest.raises(perdure.Malformed):
            app.handle("seven")


async def test_a_hold_on_an_earlier_task_can_be_had_again(app):
    async with app, app.worker():
        task_id = (await app.submit("add", 1)).id
        assert await app.handle(task_id, app.tasks["add"]).result(10) == 2


async def test_handles_of_many_are_a_list_of_equal_and_hashable_holds(app):
    @app.task("number")
    async def number(n: int) -> int:
        return n

    async with app, app.worker():
        handles = await app.submit_many([number.call(n=n) for n in range(20)])
        assert type(handles) is list
        assert len({*handles}) == 20
        assert [app.handle(handle.id) for handle in handles] == handles
        assert weakref.ref(handles[0])() is handles[0]
        assert {(each.state, each.replayed, each.outcome) for each in handles} == {("queued", False, "created")}
        assert [await each.result(10) for each in handles] == list(range(20))


async def test_waiting_for_all_any_and_one_after_another(app):
    add = app.tasks["add"]
    async with app, app.worker():
        slow = await app.submit("hang")
        quick = await app.submit_many([add.call(number) for number in range(5)])
        await perdure.wait_all(quick, timeout=10)
        assert [await handle.result(timeout=0) for handle in quick] == [1, 2, 3, 4, 5]
        assert slow not in await perdure.wait_any([slow, *quick], timeout=10)
        assert {handle.id async for handle in perdure.as_completed(quick, timeout=10)} == {each.id for each in quick}
        with pytest.raises(perdure.WaitTimedOut):
            await perdure.wait_all([slow, *quick], timeout=0.01)
        await slow.cancel()


async def test_handles_of_two_apps_are_not_waited_for_together(app, tmp_path):
    other = perdure.App(tmp_path / "other.db")
    async with app, other:
        handles = [await app.submit("add", left=1), await other.submit("add", left=1)]
        with pytest.raises(perdure.Misuse, match="different apps"):
            await perdure.wait_all(handles)


async def test_a_result_that_is_not_kept_any_more_is_told_apart_from_a_failure(tmp_path):
    app = perdure.App(tmp_path / "app.db")

    @app.task("short", retention={"succeeded": 3600}, result_retention=60)
    async def short() -> str:
        return "soon gone"

    async with TestApp(app) as t:
        handle = await app.submit(short)
        await t.run_until_idle()
        assert await app.handle(handle.id).result(timeout=0) == "soon gone"
        await t.advance(61)
        with pytest.raises(perdure.NotFound, match="result is not kept any more"):
            await app.handle(handle.id).result(timeout=0)
        assert (await handle.status()).state == "succeeded"
        await t.advance(3600)
        with pytest.raises(perdure.NotFound, match="its retention may be over"):
            await handle.status()


async def test_what_handlers_log_is_read_with_the_task(app):
    @app.task("talk")
    async def talk(lines: int, *, ctx: perdure.Context) -> None:
        for number in range(lines):
            ctx.logger.info("line %d", number)

    @app.task("talk.plainly")
    def talk_plainly() -> None:
        logging.getLogger("shop").error("from a thread")

    async with app, app.worker():
        many, one = await app.submit(talk, lines=1_200), await app.submit(talk_plainly)
        await perdure.wait_all([many, one], 10)
        logged = await many.logs()
        assert [each.message for each in logged[:3]] == ["line 0", "line 1", "line 2"]
        assert logged[-1].message == "line 1199"
        assert len(logged) == 1_000
        assert sum(each.dropped for each in logged) == 1_200 - 999
        [line] = await one.logs()
        assert (line.level, line.message) == ("error", "from a thread")
        assert line.attempt_id == (await one.attempts())[0].id


async def test_who_waits_where_no_worker_is_is_told_so_in_the_log(app, caplog):
    app.patience.seconds = 0.01
    async with app:
        handle = await app.submit("greet", person="Ann")
        with caplog.at_level(logging.WARNING, "perdure.wait"):
            waiting = asyncio.create_task(handle.result())
            while not (told := [each for each in caplog.records if each.name == "perdure.wait"]):
                await asyncio.sleep(0.01)
        [told] = told
        assert told.getMessage() == (
            f"task {handle.id} is waited for, and no live worker serves queue 'bulk': start a worker for queue 'bulk';"
            " until then it waits (`perdure worker MODULE:APP` starts one)"
        )
        async with app.worker():
            assert await waiting == "Hello, Ann"


async def test_a_wait_that_is_over_does_not_go_on_for_what_is_in_the_way(monkeypatch):
    monkeypatch.setattr(patience, "EXPLAIN_SECONDS", 0.01)

    async def wait():
        raise perdure.WaitTimedOut("not ended after 1 s", timeout=1)

    with pytest.raises(perdure.WaitTimedOut, match=r"^not ended after 1 s$"):
        await asyncio.wait_for(patience.Patience().bear(wait(), asyncio.Event().wait), 30)


async def test_a_wait_that_is_over_says_what_the_task_waits_for(app):
    async with app:
        handle = await app.submit("greet", person="Ann")
        with pytest.raises(perdure.WaitTimedOut, match="; no live worker serves queue 'bulk': start a worker"):
            await handle.result(timeout=0.01)
        later = await app.submit("greet", person="Ann", delay=60)
        with pytest.raises(perdure.WaitTimedOut, match="; it is not due yet"):
            await perdure.wait_all([later], timeout=0.01)
        with app.job("one") as job:
            job.add("greet", person="Ann")
        with pytest.raises(perdure.WaitTimedOut, match="; no live worker serves queue 'bulk': start a worker"):
            await (await job.submit()).wait(timeout=0.01)
