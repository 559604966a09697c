"""Jobs that grow while they run: handlers that add tasks to their own jobs."""

import perdure
from perdure import Context, NewTask, SyncContext


async def test_a_handler_maps_over_items_and_reduces(app):
    @app.task("split")
    async def split(ctx: Context, numbers: list[int]) -> list[str]:
        mapped = await ctx.map(app.tasks["add"], numbers, reduce=app.tasks["sum"])
        assert set(mapped.task_ids) == {*mapped.names, mapped.reduce}
        return mapped.names

    async with app, app.worker():
        with app.job("sums") as job:
            job.add(split, [1, 2, 3], name="split")
        handle = await job.submit()
        assert await handle.result(10) == {
            "split": ["split.add-1", "split.add-2", "split.add-3"],
            "split.add-1": 2,
            "split.add-2": 3,
            "split.add-3": 4,
            "split.sum-1": 9,
        }
        assert await handle["split.sum-1"].result() == 9
        assert (await handle.status()).total == 5


async def test_a_plain_function_does_the_same(app):
    @app.task("split")
    def split(ctx: SyncContext, numbers: list[int]) -> None:
        ctx.map("add", [{"left": number, "right": 0} for number in numbers], reduce="sum", into="numbers", name="piece")
        ctx.add_tasks([app.tasks["add"].call(5)])

    async with app, app.worker():
        with app.job("sums") as job:
            job.add(split, [1, 2], name="split")
        handle = await job.submit()
        results = await handle.result(10)
        assert results == {"split": None, "piece-1": 1, "piece-2": 2, "split.sum-1": 3, "split.add-1": 6}


async def test_an_attempt_that_runs_again_adds_nothing_twice(app):
    @app.task("split", retry=perdure.Retry(3, base=0.001))
    async def split(ctx: Context) -> None:
        await ctx.map("add", [{"left": 1}, {"left": 2}], reduce="sum", into="numbers")
        await ctx.map("add", [{"left": 1}, {"left": 2}])
        if ctx.attempt < 3:
            raise ValueError("once more")

    async with app, app.worker():
        with app.job("sums") as job:
            job.add(split, name="split")
        handle = await job.submit()
        results = await handle.result(10)
        assert results == {
            "split": None,
            **{f"split.add-{number}": 2 if number % 2 else 3 for number in (1, 2, 3, 4)},
            "split.sum-1": 5,
        }


async def test_tasks_are_added_by_name_between_what_is_there(app):
    @app.task("gather")
    async def gather(ctx: Context) -> dict[str, int]:
        return dict(ctx.parents)

    @app.task("split")
    async def split(ctx: Context) -> None:
        await ctx.add_tasks(
            [
                NewTask(kind="add", payload={"left": 1}, name="one"),
                NewTask(kind="add", name="two", depends_on=["one"], bindings={"left": "one"}),
            ],
            before=["all"],
        )

    async with app, app.worker():
        with app.job("sums") as job:
            job.add(gather, after=[job.add(split, name="split")], name="all")
        handle = await job.submit()
        assert (await handle.result(10))["all"] == {"split": None, "one": 2, "two": 3}


async def test_nothing_to_map_still_reduces(app):
    @app.task("split")
    async def split(ctx: Context) -> None:
        assert (await ctx.map("add", [])).task_ids == {}
        await ctx.map(app.tasks["add"], [], reduce=app.tasks["sum"])

    async with app, app.worker():
        with app.job("sums") as job:
            job.add(split, name="split")
        handle = await job.submit()
        assert (await handle.result(10))["split.sum-1"] == 0


async def test_mistakes_are_told_where_they_are_made(app):
    refusals = []

    @app.task("split")
    async def split(ctx: Context) -> None:
        for tasks, after, before in (
            ([NewTask(kind="add", payload={"left": 1}, name="split")], (), ()),
            ([app.tasks["add"].call(1)], ("nobody",), ()),
            ([app.tasks["add"].call(1)], (), ("other",)),
            ([NewTask(kind="add", payload={"left": "no"}, name="bad")], (), ()),
            ([NewTask(kind="add", payload={"left": 1}, name="bad", idempotency_key="k")], (), ()),
        ):
            try:
                await ctx.add_tasks(tasks, after=after, before=before)
            except perdure.Refused as refusal:
                refusals.append((type(refusal), refusal.message))
        try:
            await ctx.add_tasks([split])
        except perdure.Misuse as mistake:
            refusals.append((type(mistake), mistake.message))

    async with app, app.worker():
        with app.job("sums") as job:
            job.add(split, name="split")
            job.add("add", left=1, name="other")
        handle = await job.submit()
        assert set(await handle.result(10)) == {"split", "other"}
    kinds, messages = zip(*refusals, strict=True)
    assert kinds == (
        perdure.Conflict,
        perdure.Invalid,
        perdure.Conflict,
        perdure.Invalid,
        perdure.Invalid,
        perdure.Misuse,
    )
    for message, part in zip(
        messages,
        (
            "another task named 'split'",
            "'nobody', which the job does not have",
            "'other' cannot wait for new tasks",
            "task 'bad'",
            "its tasks have none",
            "give task.call(...)",
        ),
        strict=True,
    ):
        assert part in message


async def test_a_task_alone_has_no_job_to_add_to(app):
    @app.task("lone", max_attempts=1)
    async def lone(ctx: Context) -> None:
        await ctx.map("add", [{"left": 1}])

    async with app, app.worker():
        handle = await app.submit(lone)
        assert await handle.wait(10) == "dead_lettered"
        assert "has no job" in (await handle.status()).last_error.message
