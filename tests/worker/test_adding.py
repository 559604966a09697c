"""Handlers that add tasks to their jobs: through outages while the lease lasts, and not a moment longer."""

import asyncio

import pytest

from perdure.domain.outcome import Failed, Succeeded
from perdure.errors import Conflict, LeaseLost
from perdure.worker.context import Context
from perdure.worker.registry import Registry
from worker.conftest import StartWorker
from worker.scripted_source import ScriptedSource

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def test_tasks_are_added_under_names_that_follow_from_the_order(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def split(*, ctx: Context) -> list[str]:
        first = await ctx.map("page.read", [1, 2], reduce="page.join", into="pages", before=["last"])
        second = await ctx.map("page.read", [3], after=["split"])
        assert first.reduce == "split.join-1"
        assert await ctx.add_tasks([]) == {}
        return [*first.names, *second.names]

    registry.add("split", split)
    lease = source.offer("split", name="split", job_id="job", options=f'{{"trace":"{TRACE}"}}')
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Succeeded)
    assert outcome.result.data == b'["split.read-1","split.read-2","split.read-3"]'
    (hold, tasks), (_, more) = source.added
    assert hold == lease.hold
    assert [(each.name, each.payload, each.before) for each in tasks] == [
        ("split.read-1", 1, []),
        ("split.read-2", 2, []),
        ("split.join-1", {}, ["last"]),
    ]
    assert tasks[-1].depends_on == ["split.read-1", "split.read-2"]
    assert tasks[-1].bindings == {"pages": ["split.read-1", "split.read-2"]}
    assert [(each.name, each.depends_on) for each in more] == [("split.read-3", ["split"])]
    assert {each.trace for each in (*tasks, *more)} == {TRACE}


async def test_a_long_name_is_shortened_in_the_names_of_what_it_adds(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def split(*, ctx: Context) -> list[str]:
        return (await ctx.map("leaf", [1])).names

    registry.add("split", split)
    lease = source.offer("split", name="n" * 200, job_id="job")
    start_worker()
    await source.ended(lease)
    [(_, [task])] = source.added
    assert len(task.name) < 40
    assert task.name.endswith(".leaf-1")


async def test_what_is_added_while_the_source_is_away_is_sent_again(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def split(*, ctx: Context) -> None:
        source.away = True
        asyncio.get_running_loop().call_later(3, setattr, source, "away", False)
        await ctx.map("leaf", [1])

    registry.add("split", split)
    lease = source.offer("split", name="split", job_id="job")
    start_worker()
    assert isinstance(await source.ended(lease), Succeeded)
    assert source.calls["add_tasks"] > 1
    assert len(source.added) == 1


@pytest.mark.parametrize("how", ["told", "over"])
async def test_nothing_is_added_without_the_lease(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, how: str
) -> None:
    seen: list[type[BaseException]] = []
    stopped = asyncio.Event()

    async def split(*, ctx: Context) -> None:
        if how == "told":
            source.lost.add(ctx.task_id)
        else:
            source.away = True
        try:
            await ctx.map("leaf", [1])
        except BaseException as error:
            seen.append(type(error))
            raise
        finally:
            stopped.set()

    registry.add("split", split)
    source.offer("split", name="split", job_id="job")
    start_worker()
    await stopped.wait()
    assert seen == [LeaseLost if how == "told" else asyncio.CancelledError]
    assert source.added == []
    assert source.outcomes == {}


async def test_a_refusal_reaches_the_handler(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    async def split(*, ctx: Context) -> None:
        await ctx.map("leaf", [1])

    source.add_refusal = Conflict("there is another task of that name")
    registry.add("split", split)
    lease = source.offer("split", name="split", job_id="job")
    start_worker()
    outcome = await source.ended(lease)
    assert isinstance(outcome, Failed)
    assert "another task" in outcome.error.message
