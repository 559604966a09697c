"""Jobs built in code."""

from contextlib import suppress

import pytest

import perdure


async def test_results_flow_along_the_edges(app):
    async with app, app.worker():
        with app.job("sums", metadata={"who": "me"}) as job:
            parts = [job.add("add", left=number) for number in (1, 2, 3)]
            whole = job.add("sum", numbers=[part.result for part in parts], name="whole")
            last = job.add("add", left=whole.result, right=10)
        handle = await job.submit()
        assert await handle.wait(10) == "succeeded"
        assert await handle.result() == {"add-1": 2, "add-2": 3, "add-3": 4, "whole": 9, "add-4": 19}
        assert await handle[last].result() == 19
        assert await handle["whole"].result() == 9
        tasks = {task.name: task.parents for task in await handle.tasks()}
        assert tasks["whole"] == ("add-1", "add-2", "add-3")
        assert tasks["add-4"] == ("whole",)
        assert (await handle.status()).metadata == {"who": "me"}
        assert (await handle.events())[0].type == "submitted"


async def test_after_makes_a_dependency_without_a_result(app):
    async with app, app.worker():
        with app.job("order") as job:
            first = job.add("add", left=1)
            job.add("add", left=2, after=[first])
            job.add("add", left=3, after=["add-2"])
        handle = await job.submit()
        await handle.wait(10)
        first_, second, third = await handle.tasks()
        assert first_.finished_us <= second.leased_us <= second.finished_us <= third.leased_us


async def test_the_first_failure_decides_and_is_named(app):
    async with app, app.worker():
        with app.job("broken") as job:
            bad = job.add("fail", text="no", name="bad")
            job.add("add", left=1, after=[bad], name="never")
        handle = await job.submit()
        with pytest.raises(perdure.JobFailed, match=r"ended failed: bad \(dead_lettered, exhausted\)") as failed:
            await handle.result(10)
        assert failed.value.names == ["bad"]
        assert await handle["never"].wait(0) == "cancelled"


async def test_an_edge_may_go_on_after_a_failure(app):
    async with app, app.worker():
        with app.job("tolerant") as job:
            bad = job.add("fail", text="no")
            job.add("add", left=1, after=[bad], on_failure="continue", name="still")
        handle = await job.submit()
        assert await handle.wait(10) == "partially_succeeded"
        assert await handle.result() == {"still": 2}


async def test_a_trigger_tells_when_a_task_may_run(app):
    async with app, app.worker():
        with app.job("clean up") as job:
            bad = job.add("fail", text="no")
            job.add("add", left=1, after=[bad], trigger="any_failed", name="cleanup")
        handle = await job.submit()
        await handle.wait(10)
        assert await handle["cleanup"].result(0) == 2


async def test_a_job_is_cancelled_as_a_whole(app):
    async with app, app.worker():
        with app.job("stop") as job:
            job.add("add", left=1, delay=3600)
            job.add("add", left=1, after=["add-1"])
        handle = await job.submit()
        with pytest.raises(perdure.WaitTimedOut, match="2 of 2 tasks were open"):
            await handle.wait(0.01)
        assert await handle.cancel("not today")
        assert await handle.wait(10) == "cancelled"
        with pytest.raises(perdure.JobFailed, match="ended cancelled"):
            await handle.result()
        assert not await handle.cancel()


async def test_the_same_key_gives_the_same_job(app):
    def build() -> perdure.JobBuilder:
        with app.job("once") as job:
            job.add("add", left=1)
        return job

    async with app:
        first = await build().submit(idempotency_key="k")
        again = await build().submit(idempotency_key="k")
        assert (first.id, first.task_ids, again.replayed) == (again.id, again.task_ids, True)
        found = await app.job_handle(first.id)
        assert found.task_ids == first.task_ids


async def test_an_unknown_job_is_not_found(app):
    async with app:
        with pytest.raises(perdure.NotFound):
            await app.job_handle("0198c5a4-7f3e-7abc-8def-0123456789ab")
        with pytest.raises(perdure.Malformed):
            await app.job_handle("seven")


async def test_parents_come_first_and_names_are_used_once(app):
    with app.job("wrong") as job, app.job("other") as other:
        foreign = other.add("add", left=1)
        job.add("add", left=1, name="one")
        with pytest.raises(perdure.Invalid, match="has a task named 'one' already"):
            job.add("add", left=1, name="one")
        with pytest.raises(perdure.Invalid, match="depends on 'add-1', which this job does not have"):
            job.add("add", left=foreign.result)
        with pytest.raises(perdure.Invalid, match="depends on 'two', which this job does not have"):
            job.add("add", left=1, after=["two"])
        with pytest.raises(perdure.Invalid):
            job.add("add", middle=1)
        other_submitted = await _submitted(app, other)
        assert list(other_submitted.task_ids) == ["add-1"]
        await _submitted(app, job)
        with pytest.raises(perdure.Misuse, match="no task can be added"):
            job.add("add", left=1)


async def test_a_result_inside_another_value_is_refused(app):
    @app.task("nested")
    def nested(what: dict[str, int]) -> int:
        return len(what)

    with app.job("wrong") as job:
        first = job.add("add", left=1)
        with pytest.raises(perdure.Invalid, match="result of 'add-1'> is inside another value"):
            job.add(nested, what={"x": first.result})
        await _submitted(app, job)


async def test_a_result_to_come_is_no_field_of_a_task_alone(app):
    async with app:
        with app.job("wrong") as job:
            first = job.add("add", left=1)
        with pytest.raises(perdure.Misuse, match="add this call to that job"):
            await app.submit("add", left=first.result)
        await job.submit()


async def test_a_name_may_be_the_jobs_or_the_handlers(app):
    @app.task("call")
    def call(name: str) -> str:
        return name

    async with app, app.worker():
        with app.job("names") as job:
            with pytest.raises(perdure.Misuse, match=r"task.call\(name=...\)"):
                job.add(call, name="x")
            job.add(call.call(name="x"), name="y")
        handle = await job.submit()
        assert await handle.result(10) == {"y": "x"}


def test_a_job_that_is_never_submitted_warns(app):
    with app.job("forgotten") as job:
        job.add("add", left=1)
    kept = [job]
    del job
    with pytest.warns(RuntimeWarning, match="job 'forgotten' with 1 task was never submitted"):
        kept.clear()


def test_a_job_whose_block_failed_is_given_up(app):
    with suppress(ZeroDivisionError), app.job("broken") as job:
        job.add("add", left=1)
        raise ZeroDivisionError
    with pytest.raises(perdure.Misuse):
        job.add("add", left=1)


async def _submitted(app: perdure.App, job: perdure.JobBuilder) -> perdure.JobHandle:
    async with app:
        return await job.submit()


async def test_a_wait_looks_at_the_newest_open_tasks_alone(app, monkeypatch):
    async with app, app.worker():
        with app.job("fan out") as job:
            first = job.add("add", left=0)
            for number in range(250):
                job.add("add", left=number, after=[first])
        handle = await job.submit()
        views = (await app.operations()).views
        monkeypatch.setattr(views, "job_tasks", None)
        monkeypatch.setattr(views, "task", None)
        assert await handle.wait(10) == "succeeded"
