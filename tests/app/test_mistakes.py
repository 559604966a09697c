"""Mistakes with tasks, refused where they are made and told with what to write instead."""

import asyncio

import pytest

import perdure
from perdure.testing import TestApp


async def test_a_function_that_is_no_task_is_refused(app):
    def plain(): ...

    with pytest.raises(perdure.Misuse, match=r"plain is not a task: decorate it with @app.task\(kind\)"):
        await app.submit(plain)
    with pytest.raises(perdure.Misuse, match="is not a task: decorate it"):
        await app.submit(lambda: None)
    with pytest.raises(perdure.Misuse, match="is not a task: decorate it"):
        await app.submit_many([plain])


async def test_a_task_that_was_called_is_refused(app):
    with pytest.raises(perdure.Misuse, match="pass the task and its arguments, do not call it"):
        await app.submit(app.tasks["greet"]("Ann"))
    with pytest.raises(perdure.Misuse, match="of type int is not a task: pass the task"):
        await app.submit(app.tasks["add"](1))
    with pytest.raises(perdure.Misuse, match=r"write task.call\(...\) for 'add'"):
        await app.submit_many([app.tasks["add"]])


def test_a_decorator_without_a_kind_is_refused(app):
    with pytest.raises(perdure.Misuse, match=r'write @app.task\("resize"\) above resize'):

        @app.task
        def resize(): ...


@pytest.mark.parametrize("kind", ["", "two words", "-dash", "k" * 201, None, 7])
def test_a_bad_name_of_a_kind_is_refused_at_the_decorator(app, kind):
    with pytest.raises(perdure.Misuse, match="cannot be a kind: kind must be"):
        app.task(kind)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"priority": 10}, "priority"),
        ({"queue": "no good"}, "queue must be"),
        ({"timeout": -1}, "timeout"),
        ({"max_attempts": 0}, "max_attempts must be between"),
        ({"retry": 3}, "retry must be a perdure.Retry"),
        ({"lease": "long"}, "lease"),
        ({"retention": {"running": 1}}, "retention"),
    ],
)
def test_a_bad_option_of_a_kind_is_refused_at_the_decorator_with_its_name(app, options, says):
    with pytest.raises(perdure.Misuse, match=f"task 'resize': {says}"):
        app.task("resize", **options)


def test_a_node_given_for_its_result_is_refused(app):
    job = app.job("sums")
    node = job.add("add", left=1)
    for wrong in ({"left": node}, {"left": [node]}, {"payload": {"left": node}}):
        with pytest.raises(perdure.Misuse, match=r"use node\.result"):
            job.add("add", **wrong)
    job.__exit__(ValueError, ValueError(), None)


def test_one_limit_instead_of_a_list_is_refused_at_the_decorator(app):
    with pytest.raises(perdure.Misuse, match=r"task 'resize': limits must be a list, such as \[perdure.Limit"):
        app.task("resize", limits=perdure.Limit(concurrency=2))


@pytest.mark.parametrize(
    "options",
    [
        {"limits": [perdure.Limit(concurrency=2), perdure.Limit(rate=2, per=1, by=("width", "custmer"))]},
        {"fair_by": "custmer"},
        {"unique": perdure.Unique(by="custmer")},
    ],
)
def test_a_field_that_the_handler_does_not_take_cannot_make_keys(app, options):
    (name,) = options

    def resize(customer: str, width: int = 0) -> None: ...

    with pytest.raises(
        perdure.Misuse,
        match=f"{name} of 'resize' is by 'custmer', which its handler does not take: it takes customer, width",
    ):
        app.task("resize", **options)(resize)

    def takes_more(**fields: str) -> None: ...

    def takes_whole(order: dict[str, str], /) -> None: ...

    app.task("more", **options)(takes_more)
    app.task("whole", **options)(takes_whole)
    app.task("newer", **options, upcasts={"older": dict})(resize)  # A payload of the older kind may have it.


@pytest.mark.parametrize("after", ["add-1", None])
def test_one_parent_instead_of_a_list_is_refused(app, after):
    job = app.job("sums")
    node = job.add("add", left=1)
    with pytest.raises(perdure.Misuse, match=r"after= takes a list of tasks, not one: write after=\[('add-1'|node)\]"):
        job.add("add", left=2, after=after or node)
    job.hand_over()


def test_a_result_inside_a_field_of_a_kind_elsewhere_is_refused(app):
    job = app.job("sums")
    node = job.add("add", left=1)
    with pytest.raises(perdure.Invalid, match="the <result of 'add-1'> is inside another value of 'elsewhere'"):
        job.add("elsewhere", numbers=[node.result, 4])
    job.hand_over()


@pytest.mark.parametrize(
    ("fields", "meant"),
    [({"left": 1, "timout": 3}, "timeout"), ({"lefd": 1}, "left"), ({"left": 1, "dely": 3}, "delay")],
)
def test_a_name_that_is_neither_a_field_nor_an_option_is_told_what_may_be_meant(app, fields, meant):
    with pytest.raises(perdure.Invalid, match=rf"; did you mean '{meant}'\?$"):
        app.call("add", **fields)


@pytest.mark.parametrize(
    ("make", "field", "right"),
    [
        (lambda: TestApp("x"), "app", "the perdure.App to be tested"),
        (lambda: TestApp(None), "app", "the perdure.App to be tested"),
        (lambda: TestApp(perdure.App(":memory:"), seed="x"), "seed", "a whole number"),
        (lambda: TestApp(perdure.App(":memory:"), schedules="x"), "schedules", "true or false"),
        (lambda: perdure.App(5), "store", "a path or the URL of a store"),
        (lambda: perdure.App(b"x"), "store", "a path or the URL of a store"),
        (lambda: perdure.App(settings={"store": "x"}), "settings", "a perdure.Settings"),
        (lambda: perdure.App(tracer=5), "tracer", "the methods of perdure.telemetry.tracer.Tracer"),
        (lambda: perdure.SyncApp("x"), "app", "a perdure.App"),
        (lambda: perdure.Settings.load(config=5), "config", "the path of a TOML file"),
        (lambda: perdure.Partly(5, summary=5), "summary", "text"),
        (lambda: asyncio.run(perdure.wait_all(5)), "handles", "a list of handles"),
        (lambda: asyncio.run(perdure.wait_any(["x"])), "handles", "a list of handles"),
        (lambda: perdure.App(":memory:").sync.wait_all(["x"]), "handles", "a list of handles of an app.sync"),
        (lambda: perdure.App(":memory:").sync.wait_any("x"), "handles", "a list of handles of an app.sync"),
        (lambda: asyncio.run(anext(perdure.as_completed("x"))), "handles", "a list of handles"),
    ],
)
def test_something_else_in_the_place_of_what_is_taken_is_refused_with_what_to_give(make, field, right):
    with pytest.raises((perdure.Misuse, perdure.Invalid), match=right) as told:
        make()
    assert told.value.fields["field"] == field


def test_what_is_no_function_is_refused_as_a_handler(app):
    with pytest.raises(perdure.Misuse, match="5 is no function"):
        app.task("five")(5)
