"""Submitting through the app, and what comes back."""

import asyncio
import logging
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

import perdure
from perdure.app.submitting import all_or_raise
from perdure.engine.requests import TaskRequest
from perdure.errors import Invalid


@perdure.App("unused.db").task("importable")
def importable() -> None: ...


async def test_a_task_is_still_the_function_it_was(app):
    add = app.tasks["add"]
    assert add(1, right=2) == 3
    assert add.__name__ == "add"
    assert await app.tasks["greet"]("Ann") == "Hello, Ann"


async def test_a_kind_cannot_be_registered_twice(app):
    with pytest.raises(perdure.Misuse, match="kind 'add' is registered already"):
        app.task("add")(lambda: None)


async def test_an_unknown_option_of_a_kind_is_refused_with_the_known_ones(app):
    with pytest.raises(perdure.Misuse, match=r"unknown option 'retries'; the options are .*max_attempts"):
        app.task("other", retries=3)
    with pytest.raises(perdure.Misuse, match="either on its own or inside retry="):
        app.task("other", max_attempts=3, retry=perdure.Retry(3))


async def test_a_kinds_options_hold_before_any_worker_has_started(app):
    async with app:
        view = await (await app.submit(app.tasks["greet"], person="Ann")).status()
    assert (view.queue, view.priority, view.max_attempts) == ("bulk", 7, 5)


async def test_options_of_a_submit_win_over_those_of_the_kind(app):
    async with app:
        handle = await app.submit("greet", person="Ann", queue="other", priority=1, max_attempts=2, labels={"a": "b"})
        view = await handle.status()
    assert (view.queue, view.priority, view.max_attempts, view.labels) == ("other", 1, 2, {"a": "b"})


async def test_what_workers_declared_is_not_overwritten_by_a_submitter(app, tmp_path):
    async with app, app.worker():
        await (await app.submit("greet", person="Ann")).result(10)
    older = perdure.App(tmp_path / "app.db")

    @older.task("greet", queue="ancient")
    async def greet(person: str) -> str: ...

    async with older:
        assert (await (await older.submit(greet, person="Bob")).status()).queue == "bulk"


async def test_the_same_idempotency_key_gives_the_same_task(app):
    async with app:
        first = await app.submit("add", left=1, idempotency_key="k")
        again = await app.submit("add", left=1, idempotency_key="k")
        assert (first.replayed, again.replayed) == (False, True)
        assert first == again
        with pytest.raises(perdure.IdempotencyConflict):
            await app.submit("add", left=2, idempotency_key="k")


async def test_positional_arguments_and_whole_payloads_mean_the_same(app):
    async with app, app.worker():
        for handle in [
            await app.submit("add", 1, 2),
            await app.submit(app.tasks["add"], 1, right=2),
            await app.submit("add", payload={"left": 1, "right": 2}),
            await app.submit(app.tasks["add"].call(1, 2)),
        ]:
            assert await handle.result(10) == 3


async def test_a_kind_by_name_and_its_task_mean_the_same_call(app):
    for args, fields in [((1, 2), {}), ((), {"left": 1, "right": 2}), ((1,), {"right": 2, "priority": 3})]:
        named, given = app.call("add", *args, **fields), app.call(app.tasks["add"], *args, **fields)
        assert (named.kind, named.payload, named.options, named.task) == (
            given.kind,
            given.payload,
            given.options,
            given.task,
        )


async def test_a_payload_that_does_not_fit_is_refused_with_the_field(app):
    async with app:
        for wrong in ({"left": "one"}, {"left": 1, "middle": 2}, {}):
            with pytest.raises(perdure.Invalid) as refused:
                await app.submit("add", **wrong)
            assert "add" in str(refused.value)
            assert refused.value.field in ("left", "middle")


async def test_a_kind_that_this_app_lacks_can_be_submitted_by_name(app):
    async with app:
        handle = await app.submit("elsewhere", x=1, delay=60)
        view = await handle.status()
    assert msgspec.json.decode(view.payload.data) == {"x": 1}
    assert view.state == "pending"
    with pytest.raises(perdure.Misuse, match="give its fields by name"):
        await app.submit("elsewhere", 1)
    with pytest.raises(perdure.Misuse, match="either payload= or the handler's fields"):
        await app.submit("elsewhere", payload={"x": 1}, y=2)


async def test_a_name_that_could_mean_two_things_is_refused(app):
    @app.task("move")
    def move(queue: str) -> str:
        return queue

    async with app:
        with pytest.raises(perdure.Misuse, match=r"queue= could mean the field of 'move'.*task.call\(queue=...\)"):
            await app.submit(move, queue="a")
        view = await (await app.submit(move.call(queue="a"), queue="b")).status()
    assert (view.queue, msgspec.json.decode(view.payload.data)) == ("b", {"queue": "a"})


async def test_a_call_takes_options_only(app):
    call = app.tasks["add"].call(1)
    with pytest.raises(perdure.Misuse, match="has its fields already"):
        await app.submit(call, right=2)
    with pytest.raises(perdure.Misuse, match="no option 'prio'"):
        call.with_options(prio=1)


async def test_run_at_is_an_instant(app):
    async with app:
        view = await (await app.submit("add", left=1, run_at=datetime.now(UTC) + timedelta(hours=1))).status()
        assert view.state == "pending"
        with pytest.raises(perdure.Invalid) as refused:
            await app.submit("add", left=1, run_at=datetime(2030, 1, 1))  # noqa: DTZ001
    assert refused.value.field == "run_at"


async def test_many_are_submitted_in_order_and_one_refusal_touches_no_other(app):
    add = app.tasks["add"]
    calls = [add.call(1), add.call(2).with_options(priority=99), TaskRequest(kind="elsewhere", payload=[1])]
    async with app:
        first, second, third = await app.submit_many(calls, return_errors=True)
        assert isinstance(second, perdure.Invalid)
        assert ((await first.status()).kind, (await third.status()).kind) == ("add", "elsewhere")
        with pytest.raises(perdure.Invalid, match="1 of 3 tasks were refused, the first is number 1") as refused:
            await app.submit_many(calls)
        assert refused.value.index == 1
        assert len(refused.value.submitted) == 2
        assert await app.submit_many([]) == []


async def test_a_closed_app_opens_again_when_it_is_used(app):
    async with app:
        handle = await app.submit("add", left=1)
    async with app:
        assert (await handle.status()).state == "queued"


async def test_what_is_not_awaited_in_the_loop_is_refused(app):
    async with app:
        with pytest.raises(perdure.Misuse, match="inside a running event loop"):
            app.sync.submit("add", left=1)


def test_an_app_is_used_by_one_event_loop_after_another(app):
    async def submit() -> str:
        async with app:
            return (await app.submit("add", left=1)).id

    assert asyncio.run(submit()) != asyncio.run(submit())


def test_an_app_that_was_not_closed_leaves_nothing_behind_for_the_next_loop(app):
    async def submit() -> str:
        return (await app.submit("add", left=1)).id

    asyncio.run(submit())
    before = threading.active_count()
    for _ in range(3):
        asyncio.run(submit())
    assert threading.active_count() <= before
    asyncio.run(app.close())


def test_threads_may_each_run_one_event_loop_after_another_and_close_nothing(app):
    async def submit() -> str:
        return (await app.submit("later")).id

    def submit_some() -> list[str]:
        return [asyncio.run(submit()) for _ in range(5)]

    with ThreadPoolExecutor(4) as threads:
        made = [each.result() for each in [threads.submit(submit_some) for _ in range(4)]]
    assert len({task_id for some in made for task_id in some}) == 20
    asyncio.run(app.close())


async def test_one_function_may_be_the_handler_of_several_kinds(app):
    @app.task("twice.new")
    @app.task("twice.old")
    async def twice(number: int) -> int:
        return 2 * number

    async with app, app.worker():
        assert await (await app.submit("twice.old", 2)).result(10) == 4
        assert await (await app.submit(twice, 3)).result(10) == 6


async def test_older_kinds_are_translated_to_the_newer_one(app):
    @app.task("resize.v2", upcasts={"resize.v1": lambda old: {"width": old["size"], "height": old["size"]}})
    async def resize(width: int, height: int) -> int:
        return width * height

    async with app, app.worker():
        assert await (await app.submit("resize.v1", payload={"size": 3})).result(10) == 9
        assert await (await app.submit(resize, width=2, height=3)).result(10) == 6


def test_a_task_is_pickled_by_name():
    assert pickle.loads(pickle.dumps(importable)) is importable  # noqa: S301


def test_a_kind_says_which_errors_are_final(app):
    @app.task("strict", retry_on=[ConnectionError], give_up_on=[TimeoutError])
    def strict() -> None: ...

    assert not strict.handler.gives_up_on(ConnectionError())
    assert strict.handler.gives_up_on(TimeoutError())
    assert strict.handler.gives_up_on(ValueError())


async def test_the_errors_that_came_back_stay_as_they_were(app):
    errors = [Invalid("one", field="x"), Invalid("two")]
    with pytest.raises(Invalid, match="2 of 2 tasks were refused") as caught:
        all_or_raise(errors)
    assert caught.value.fields == {"field": "x", "index": 0, "submitted": []}
    assert (str(errors[0]), errors[0].message, errors[0].fields) == ("one", "one", {"field": "x"})


async def test_a_kind_that_nobody_has_is_warned_of_once(app, caplog):
    async with app:
        await app.submit("greet", person="Ann")
        with caplog.at_level(logging.WARNING, "perdure.app"):
            await app.submit("greeet", person="Ann")
            await app.submit("greeet", person="Bob")
            await app.submit_many([perdure.Call("greeet", {}), perdure.Call("gret", {"n": 1})])
            with app.job("j") as job:
                job.add("greet", person="Ann")
                job.add("grete", person="Ann")
            await job.submit()
        told = [each.getMessage() for each in caplog.records if each.name == "perdure.app"]
    assert [each.split("'")[1] for each in told] == ["greeet", "gret", "grete"]
    assert all(each.endswith("did you mean 'greet'?") for each in told)
