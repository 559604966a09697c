"""What becomes of a job: how far it is, when its tasks ran, and what failed of it run again."""

import pytest

import perdure


async def test_a_job_tells_how_far_it_is_and_when_its_tasks_ran(app):
    @app.task("count")
    async def count(ctx: perdure.Context, items: int) -> int:
        ctx.progress(items, items)
        return items

    async with app, app.worker():
        with app.job("counts") as job:
            parts = [job.add(count, items=number, name=f"part-{number}") for number in (1, 2)]
            job.add("sum", numbers=[part.result for part in parts], name="whole")
        handle = await job.submit()
        await handle.wait(10)
        progress = await handle.progress()
        assert (progress.state, progress.total, progress.ended) == ("succeeded", 3, 3)
        assert (progress.items_done, progress.items_total) == (3, 3)
        timeline = await handle.timeline()
        assert {each.name for each in timeline.tasks} == {"part-1", "part-2", "whole"}
        assert timeline.tasks[-1].name == timeline.critical_tasks[-1] == "whole"
        assert [each.critical for each in timeline.tasks].count(True) == 2
        assert timeline.critical_path <= timeline.makespan
        assert timeline.work == pytest.approx(sum(each.ran for each in timeline.tasks))
        assert all(each.waited >= 0 for each in timeline.tasks)


async def test_what_failed_of_a_job_runs_again(app):
    broken = True

    @app.task("once", max_attempts=1)
    async def once(text: str) -> str:
        if broken and text == "bad":
            raise ValueError(text)
        return text

    async with app, app.worker():
        with app.job("pair") as job:
            bad = job.add(once, text="bad", name="bad")
            job.add(once, text="good", name="good")
            job.add(once, text=bad.result, name="after")
        handle = await job.submit()
        assert await handle.wait(10) == "failed"
        broken = False
        retried = await handle.retry()
        assert (retried.redriven, retried.revived) == (1, 1)
        assert await handle.result(10) == {"bad": "bad", "good": "good", "after": "bad"}
        assert (await handle["bad"].status()).generation == 2
        assert (await handle["good"].status()).generation == 1
        with pytest.raises(perdure.Conflict, match="nothing of job"):
            await handle.retry()


async def test_a_job_that_is_not_there_is_not_found(app):
    async with app:
        with app.job("none") as job:
            job.add("add", left=1)
        handle = await job.submit()
        handle.id = "0198c5a4-7f3e-7abc-8def-0123456789ab"
        for ask in (handle.retry, handle.progress, handle.timeline):
            with pytest.raises(perdure.NotFound):
                await ask()
