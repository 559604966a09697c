"""Workers on the real engine and a SQLite file, duties running, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from perdure.ambient import Chance, Ids
from perdure.domain.retry import Retry
from perdure.domain.states import Reason, TaskState
from perdure.engine.engine import Engine
from perdure.engine.requests import JobRequest, JobTaskRequest, Principal, TaskRequest
from perdure.errors import PerdureError, StoreUnreachable
from perdure.store.ledger import WorkerOrder
from perdure.store.sqlite.store import SqliteStore
from perdure.store.views import Ended, TaskView
from perdure.worker.context import Context
from perdure.worker.loop import Ending, Worker
from perdure.worker.registry import Registry
from perdure.worker.verdicts import Snooze
from perdure.worker.worker_settings import WorkerSettings
from virtual_time import VirtualClock

ME = Principal("me")


class Site:
    """An engine with its duties, and workers on it."""

    def __init__(self, engine: Engine, clock: VirtualClock, ids: Ids, path: str) -> None:
        self.engine = engine
        self.registry = Registry()
        self.path = path
        self.workers: list[tuple[Worker, asyncio.Task[Ending]]] = []
        self._clock = clock
        self._ids = ids

    async def start_worker(self, source: Any = None, **settings: Any) -> Worker:
        await self.engine.declare(self.registry.definitions(), ME)
        worker = Worker(
            source or self.engine,
            self.registry,
            clock=self._clock,
            ids=self._ids,
            chance=Chance(2),
            settings=WorkerSettings(**{"keeper_thread": False, **settings}),
        )
        self.workers.append((worker, asyncio.create_task(worker.run())))
        await asyncio.sleep(0.1)
        return worker

    async def submit(self, kind: str, **fields: Any) -> str:
        (answer,) = await self.engine.submit([TaskRequest(kind=kind, **fields)], ME)
        assert not isinstance(answer, PerdureError), answer
        return answer.id

    async def ended(self, task_id: str, within: float = 10_000.0) -> Ended:
        ended = await self.engine.wait_ended("default", [task_id], within)
        assert ended, await self.view(task_id)
        return ended[0]

    async def view(self, task_id: str) -> TaskView:
        view = await self.engine.views.task("default", task_id)
        assert view is not None
        return view


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    clock = VirtualClock(asyncio.get_running_loop())
    path = str(tmp_path / "store.db")
    store = await SqliteStore.open(path, clock=clock, inline=True, synchronous="OFF")
    ids = Ids(clock)
    engine = Engine(store, clock=clock, ids=ids, chance=Chance(1))
    async with engine.duty_runner():
        site = Site(engine, clock, ids, path)
        yield site
        for worker, task in site.workers:
            if not task.done():
                worker.abandon()
                await task
    await engine.close()
    await store.close()


async def test_a_task_goes_straight_through(site: Site) -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(2)
        return number * 2

    site.registry.add("double", double)
    await site.start_worker()
    task = await site.submit("double", payload={"number": 21})
    await asyncio.sleep(1)
    assert (await site.view(task)).state is TaskState.RUNNING
    ended = await site.ended(task)
    assert (ended.state, ended.result and ended.result.data) == (TaskState.SUCCEEDED, b"42")


async def test_failures_are_retried_until_the_budget_is_spent(site: Site) -> None:
    attempts: list[int] = []

    async def fail(*, ctx: Context) -> None:
        attempts.append(ctx.attempt)
        raise OSError("no route")

    site.registry.add("fail", fail, retry=Retry(3, base=10.0))
    await site.start_worker()
    ended = await site.ended(await site.submit("fail", payload={}))
    assert (ended.state, ended.reason) == (TaskState.DEAD_LETTERED, Reason.EXHAUSTED)
    assert attempts == [1, 2, 3]
    assert ended.error is not None
    assert ended.error.type == "OSError"


async def test_the_log_tells_in_how_long_a_failed_task_is_tried_again(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    async def fail() -> None:
        raise OSError("no route")

    site.registry.add("fail", fail, retry=Retry(3, "fixed", base=7.5, jitter=0))
    await site.start_worker()
    await site.ended(await site.submit("fail", payload={}))
    told = [each.getMessage().rpartition("; ")[2] for each in caplog.records if "failed: OSError" in each.getMessage()]
    assert told == ["it is tried again in 7.5 s"] * 2 + ["the task is dead_lettered"]


async def test_a_bad_payload_that_no_schema_caught_fails_for_good(site: Site) -> None:
    async def double(number: int) -> int:
        return number * 2

    task = await site.submit("double", payload={"number": "x"})
    site.registry.add("double", double)
    await site.start_worker()
    ended = await site.ended(task)
    assert ended.reason is Reason.BAD_PAYLOAD
    assert ended.error is not None
    assert ended.error.message.startswith("number: ")


async def test_a_snoozed_task_comes_back(site: Site) -> None:
    calls: list[float] = []

    async def later() -> str:
        calls.append(asyncio.get_running_loop().time())
        if len(calls) == 1:
            raise Snooze(100)
        return "awake"

    site.registry.add("later", later)
    await site.start_worker()
    ended = await site.ended(await site.submit("later", payload={}))
    assert ended.state is TaskState.SUCCEEDED
    assert calls[1] - calls[0] == pytest.approx(100, abs=5)


async def test_a_cancel_stops_a_running_handler(site: Site) -> None:
    stopped = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.sleep(10_000)
        finally:
            stopped.set()

    site.registry.add("endless", endless)
    await site.start_worker()
    task = await site.submit("endless", payload={})
    await asyncio.sleep(5)
    await site.engine.cancel([task], ME, text="not needed")
    ended = await site.ended(task, within=1)
    assert ended.state is TaskState.CANCELLED
    assert stopped.is_set()


async def test_a_timeout_is_a_failure_with_its_reason(site: Site) -> None:
    async def endless() -> None:
        await asyncio.sleep(10_000)

    site.registry.add("endless", endless, timeout=20.0, retry=Retry(1))
    await site.start_worker()
    ended = await site.ended(await site.submit("endless", payload={}))
    assert ended.reason is Reason.TIMEOUT


async def test_the_execution_deadline_ends_the_task(site: Site) -> None:
    async def endless() -> None:
        await asyncio.sleep(10_000)

    site.registry.add("endless", endless)
    await site.start_worker()
    ended = await site.ended(await site.submit("endless", payload={}, execution_limit=50.0))
    assert ended.reason is Reason.DEADLINE


async def test_a_long_handler_keeps_its_lease(site: Site) -> None:
    async def long() -> str:
        await asyncio.sleep(600)
        return "done"

    site.registry.add("long", long, lease=10.0)
    await site.start_worker()
    task = await site.submit("long", payload={})
    assert (await site.ended(task)).state is TaskState.SUCCEEDED
    assert len(await site.engine.views.attempts("default", task)) == 1


async def test_what_a_drained_worker_hands_back_runs_on_the_next_one(site: Site) -> None:
    async def long() -> str:
        await asyncio.sleep(60)
        return "done"

    site.registry.add("long", long)
    first = await site.start_worker(grace=5.0)
    task = await site.submit("long", payload={})
    await asyncio.sleep(10)
    first.drain()
    await site.start_worker()
    ended = await site.ended(task)
    assert ended.state is TaskState.SUCCEEDED
    ends = [(str(each.state), str(each.reason)) for each in await site.engine.views.attempts("default", task)]
    assert ends == [("released", "handed_back"), ("succeeded", "ok")]
    assert (await site.view(task)).attempt == 1


async def test_the_task_of_a_dead_worker_runs_on_the_next_one(site: Site) -> None:
    async def long() -> str:
        await asyncio.sleep(60)
        return "done"

    site.registry.add("long", long, lease=10.0)
    first = await site.start_worker()
    task = await site.submit("long", payload={})
    await asyncio.sleep(20)
    first.abandon()
    await site.start_worker()
    ended = await site.ended(task)
    assert ended.state is TaskState.SUCCEEDED
    states = [str(each.state) for each in await site.engine.views.attempts("default", task)]
    assert states == ["lost", "succeeded"]


async def test_a_worker_cut_off_from_its_source_stops_before_the_task_runs_elsewhere(site: Site) -> None:
    running = most = 0

    async def long() -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        try:
            await asyncio.sleep(60)
        finally:
            running -= 1
        return "done"

    class Cable:
        cut = False

        def __getattr__(self, name: str) -> Any:
            if self.cut:
                raise StoreUnreachable("the cable is cut")
            return getattr(site.engine, name)

    site.registry.add("long", long, lease=10.0)
    cable = Cable()
    await site.start_worker(source=cable)
    task = await site.submit("long", payload={})
    await asyncio.sleep(20)
    cable.cut = True
    await site.start_worker()
    assert (await site.ended(task)).state is TaskState.SUCCEEDED
    assert most == 1


async def test_results_flow_along_the_edges_of_a_job(site: Site) -> None:
    async def extract(day: str) -> list[str]:
        return [day]

    async def merge(left: list[str], right: list[str], *, ctx: Context) -> dict[str, Any]:
        return {"all": left + right, "parents": dict(ctx.parents)}

    site.registry.add("extract", extract)
    site.registry.add("merge", merge)
    await site.start_worker()
    job = await site.engine.submit_job(
        JobRequest(
            name="nightly",
            tasks=[
                JobTaskRequest(name="a", kind="extract", payload={"day": "mon"}),
                JobTaskRequest(name="b", kind="extract", payload={"day": "tue"}),
                JobTaskRequest(
                    name="c", kind="merge", payload={}, depends_on=["a", "b"], bindings={"left": "a", "right": "b"}
                ),
            ],
        ),
        ME,
    )
    ended = await site.ended(job.task_ids["c"], within=30)
    assert ended.result is not None, ended
    assert ended.result.data == b'{"all":["mon","tue"],"parents":{"a":["mon"],"b":["tue"]}}'


async def test_reports_parts_and_checkpoints_outlive_an_attempt(site: Site) -> None:
    found: list[Any] = []

    async def resume(*, ctx: Context) -> str:
        found.append(ctx.checkpointed)
        ctx.phase("executing")
        ctx.progress(3, 10)
        first = await ctx.part({"n": 1}, key="one")
        again = await ctx.part({"n": 1}, key="one")
        found.append((first, again))
        await ctx.checkpoint({"done": 1})
        if ctx.attempt == 1:
            raise OSError("once")
        await ctx.part({"n": 2}, key="two", final=True)
        return "done"

    site.registry.add("resume", resume, retry=Retry(2, base=1.0))
    await site.start_worker()
    task = await site.submit("resume", payload={})
    ended = await site.ended(task)
    assert ended.state is TaskState.SUCCEEDED, ended
    assert found == [None, (True, False), {"done": 1}, (False, False)]
    parts = await site.engine.views.parts("default", task)
    assert [(each.sequence, each.key) for each in parts if not each.superseded] == [(1, "one"), (2, "two")]
    view = await site.view(task)
    assert (view.phase, view.progress and view.progress["done"]) == ("executing", 3)


async def test_a_result_can_be_settled_with_the_handlers_own_rows(site: Site) -> None:
    async def transact(*, ctx: Context) -> None:
        connection = apsw.Connection(site.path)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT)")
            connection.execute("INSERT INTO orders VALUES (?)", (ctx.task_id,))
            ctx.settle_within(connection, {"rows": 1})
            connection.execute("COMMIT")
        finally:
            connection.close()
        raise RuntimeError("after the commit nothing can undo it")

    site.registry.add("transact", transact)
    await site.start_worker()
    ended = await site.ended(await site.submit("transact", payload={}))
    assert ended.state is TaskState.SUCCEEDED, ended
    assert ended.result is not None
    assert ended.result.data == b'{"rows":1}'


async def test_a_queue_is_worked_off_and_everything_settles_once(site: Site) -> None:
    async def add(number: int) -> int:
        if number % 3 == 0:
            await asyncio.sleep(0.01)
        return number

    site.registry.add("add", add)
    requests = [TaskRequest(kind="add", payload={"number": number}) for number in range(300)]
    answers = await site.engine.submit(requests, ME)
    workers = [await site.start_worker(concurrency=7) for _ in range(2)]
    for answer in answers:
        assert not isinstance(answer, PerdureError)
        assert (await site.ended(answer.id)).state is TaskState.SUCCEEDED
    assert sum(worker.claimed for worker in workers) == 300


@pytest.mark.parametrize("order", [WorkerOrder.DRAIN, WorkerOrder.REVOKE])
async def test_an_operators_order_ends_a_worker(site: Site, order: WorkerOrder) -> None:
    async def long() -> str:
        await asyncio.sleep(30)
        return "done"

    site.registry.add("long", long)
    worker = await site.start_worker()
    task = await site.submit("long", payload={})
    await asyncio.sleep(1)
    await site.engine.order_worker(worker.id, order, ME)
    ending = await site.workers[0][1]
    assert ending == ("drained" if order is WorkerOrder.DRAIN else "revoked")
    if order is WorkerOrder.REVOKE:
        await site.start_worker()
    assert (await site.ended(task)).state is TaskState.SUCCEEDED
