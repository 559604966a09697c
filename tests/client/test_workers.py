"""A worker of a gateway does all that a worker beside the store does."""

import asyncio

import pytest

import perdure
from client.serving import GatewayProcess
from perdure.domain.outcome import Failed, Failure, HandedBack, Succeeded
from perdure.domain.states import TaskState
from perdure.domain.task import Body
from perdure.errors import LeaseLost, Misuse, StoreUnreachable
from perdure.store.ledger import SettleAnswer, WorkerInfo, WorkerOrder


@pytest.fixture
async def app(url):
    app = perdure.App(url)
    app.reached = asyncio.Event()

    @app.task("echo")
    async def echo(value: object = None) -> object:
        return value

    @app.task("hang", lease=5)
    async def hang(*, ctx: perdure.Context) -> str:
        app.reached.set()
        await asyncio.Event().wait()
        return "never"

    @app.task("tell")
    async def tell(*, ctx: perdure.Context) -> int:
        ctx.phase("executing")
        ctx.progress(1, 2)
        for number in range(3):
            await ctx.part({"number": number}, final=number == 2)
        await ctx.checkpoint({"at": 3})
        return 3

    async with app:
        yield app


def worker_info(operations, kinds=("echo",), capacity=10):
    return WorkerInfo(operations._ids.new(), "w", "h", 1, "1", "", kinds, ("default",), (), (), capacity)


async def registered(app, kinds=("echo",)):
    operations = await app.operations()
    worker = worker_info(operations, kinds)
    assert await operations.register(worker) is WorkerOrder.WORK
    return operations, worker.id


@pytest.mark.parametrize("value", [None, 0, "", [], {"a": [1, "ü", None]}, "x" * 200_000], ids=repr)
async def test_any_value_goes_there_and_comes_back(app, value):
    handle = await app.submit("echo", value=value)
    async with app.worker():
        assert await handle.result(20) == value
    view = await handle.status()
    assert view.result is not None
    assert view.payload is not None


async def test_parents_of_every_end_are_handed_over(app):
    with app.job("inputs") as job:
        nothing = job.add("echo", payload={"value": None}, name="nothing")
        something = job.add("echo", payload={"value": [1]}, name="something")
        job.add("echo", payload={"value": {}}, name="child", after=[nothing, something])
    handle = await job.submit()
    async with app.worker():
        assert await handle.result(20) == {"nothing": None, "something": [1], "child": {}}


async def test_the_history_tells_when_the_handler_began(app):
    handle = await app.submit("echo", value=1)
    async with app.worker():
        await handle.result(20)
    [attempt] = await handle.attempts()
    assert attempt.leased_us <= attempt.started_us <= attempt.ended_us


async def test_what_a_handler_tells_arrives(app):
    handle = await app.submit("tell")
    async with app.worker():
        assert await handle.result(20) == 3
    view = await handle.status()
    assert view.progress == {"done": 1, "total": 2}
    assert [(part.sequence, part.final) for part in await handle.parts()] == [(1, False), (2, False), (3, True)]


async def test_a_cancel_reaches_a_running_handler(app):
    handle = await app.submit("hang")
    async with app.worker(control_interval=60.0):
        async with asyncio.timeout(20):
            await app.reached.wait()
            await handle.cancel("enough")
            assert await handle.wait() == TaskState.CANCELLED


@pytest.mark.parametrize("order", [WorkerOrder.DRAIN, WorkerOrder.REVOKE])
async def test_an_operator_ends_a_worker(app, order):
    operations = await app.operations()
    working = app.worker(heartbeat=60.0, poll=60.0)
    running = asyncio.create_task(working.run())
    async with asyncio.timeout(20):
        while not (workers := await operations.views.workers("default", None)):
            await asyncio.sleep(0.01)
        await asyncio.sleep(1.1)
        await operations.order_worker(workers[0].id, order, app.principal)
        assert await running == {"drain": "drained", "revoke": "revoked"}[order]


async def test_a_waiting_worker_is_drained_at_once_and_leaves_no_lease_behind(app):
    async with asyncio.timeout(20):
        async with app.worker():
            await asyncio.sleep(0.3)
    handle = await app.submit("echo", value=1)
    assert (await handle.status()).state == TaskState.QUEUED


async def test_an_idle_worker_sends_claims_that_wait_and_nothing_else(app, monkeypatch):
    operations = await app.operations()
    sent = []
    ask = operations._transport.ask

    async def noted(request, answer):
        sent.append(request.path)
        return await ask(request, answer)

    monkeypatch.setattr(operations._transport, "ask", noted)
    async with asyncio.timeout(20), app.worker(heartbeat=0.1):
        while "/v1/worker/claim" not in sent:
            await asyncio.sleep(0.01)
        sent.clear()
        await asyncio.sleep(1.0)
        assert sent == []


async def test_a_worker_is_paused_and_goes_on_by_the_claim_that_waits(app):
    operations = await app.operations()
    async with asyncio.timeout(20), app.worker(heartbeat=60.0) as working:
        while not (workers := await operations.views.workers("default", None)):
            await asyncio.sleep(0.01)
        await asyncio.sleep(1.1)
        await operations.order_worker(workers[0].id, WorkerOrder.PAUSE, app.principal)
        while working._worker.order is not WorkerOrder.PAUSE:
            await asyncio.sleep(0.01)
        handle = await app.submit("echo", value=1)
        await operations.order_worker(workers[0].id, WorkerOrder.WORK, app.principal)
        assert await handle.result(10) == 1


async def test_what_a_worker_sends_of_its_capacity_does_not_wait_for_its_claim(app):
    operations, worker = await registered(app)
    claiming = asyncio.create_task(operations.claim(worker, 5, wait=20.0))
    await asyncio.sleep(0.2)
    assert await operations.heartbeat(worker, 3) is WorkerOrder.WORK
    assert [each.capacity for each in await operations.views.workers("default", None)] == [3]
    claiming.cancel()
    await asyncio.wait([claiming])


async def test_a_worker_that_drains_tells_that_it_takes_nothing_more(app):
    operations, worker = await registered(app)
    assert await operations.heartbeat(worker, 0) is WorkerOrder.WORK
    assert [each.capacity for each in await operations.views.workers("default", None)] == [0]


async def test_a_failed_attempt_is_answered_with_when_the_task_is_tried_again(app):
    operations, worker = await registered(app)
    await app.submit("echo", value=1, retry=perdure.Retry(backoff="fixed", base=7, jitter=0))
    [lease] = await operations.claim(worker, 1)
    failed = [(lease.hold, Failed(Failure("ValueError", "no")))]
    assert [(each.state, each.delay_us) for each in await operations.settle(failed)] == [("retrying", 7_000_000)]
    assert [each.answer for each in await operations.settle(failed)] == [SettleAnswer.REPLAYED]


async def test_a_worker_that_is_ordered_to_drain_tells_that_it_does_while_it_finishes(app):
    operations = await app.operations()
    working = app.worker(heartbeat=60.0, grace=4.0, stop_grace=1.0)
    await app.submit("hang")
    running = asyncio.create_task(working.run())
    async with asyncio.timeout(20):
        await app.reached.wait()
        [worker] = await operations.views.workers("default", None)
        await operations.order_worker(worker.id, WorkerOrder.DRAIN, app.principal)
        seen = []
        while not running.done():
            [worker] = await operations.views.workers("default", None)
            seen.append((worker.capacity, worker.left_us is None))
            await asyncio.sleep(0.02)
        assert (0, True) in seen
        assert await running == "drained"


async def test_a_claim_that_waits_is_served_when_work_comes(app):
    operations, worker = await registered(app)
    clock = asyncio.get_running_loop()
    claiming = asyncio.create_task(operations.claim(worker, 5, wait=20.0))
    await asyncio.sleep(0.5)
    began = clock.time()
    handle = await app.submit("echo", value=1)
    [lease] = await claiming
    assert lease.hold.task_id == handle.id
    assert clock.time() - began < 10
    # The lease is told from before the claim was sent, which waited half a second.
    assert lease.lease_us > 60_000_000 + 400_000
    assert lease.lease_us < 60_000_000 + 10_000_000


async def test_a_cancelled_claim_gives_back_what_it_may_have_leased(app):
    operations, worker = await registered(app)
    claiming = asyncio.create_task(operations.claim(worker, 5, wait=20.0))
    await asyncio.sleep(0.2)
    claiming.cancel()
    await asyncio.wait([claiming])
    handle = await app.submit("echo", value=1)
    await operations.leave(worker)
    assert (await handle.status()).state == TaskState.QUEUED


async def test_a_settle_is_applied_once_and_a_stale_one_changes_nothing(app):
    operations, worker = await registered(app)
    handle = await app.submit("echo", value=1)
    [lease] = await operations.claim(worker, 1)
    done = [(lease.hold, Succeeded(Body(b"1")))]
    assert [each.answer for each in await operations.settle(done)] == [SettleAnswer.APPLIED]
    assert [each.answer for each in await operations.settle(done)] == [SettleAnswer.REPLAYED]
    other = [(lease.hold, Succeeded(Body(b"2")))]
    assert [each.answer for each in await operations.settle(other)] == [SettleAnswer.LEASE_LOST]
    assert await handle.result(5) == 1
    with pytest.raises(LeaseLost):
        await operations.inputs(lease.hold)


async def test_a_guessed_token_is_refused(app):
    operations, worker = await registered(app)
    handle = await app.submit("echo", value=1)
    [lease] = await operations.claim(worker, 1)
    guessed = lease.hold._replace(token="0" * 32)
    assert [each.answer for each in await operations.settle([(guessed, HandedBack())])] == [SettleAnswer.LEASE_LOST]
    assert await operations.renew([]) == []
    assert (await handle.status()).state == TaskState.LEASED


async def test_what_needs_the_store_says_so(app):
    with pytest.raises(Misuse, match="open the app on the store itself"):
        await app.submit("echo", value=1, connection=object())
    operations = await app.operations()
    with pytest.raises(Misuse, match="by a worker on the store itself"):
        operations.settle_within(object(), None, None)
    assert await app.duties() == []


async def test_a_worker_may_be_started_before_its_gateway(tmp_path):
    gateway = GatewayProcess(tmp_path / "later.db")
    await gateway.start()
    await gateway.kill()
    app = perdure.App(gateway.url)

    @app.task("late")
    async def late() -> int:
        return 1

    async with asyncio.timeout(60), app:
        worker = app.worker()
        running = asyncio.create_task(worker.run())
        with pytest.raises(StoreUnreachable):
            await app.submit(late)
        assert not running.done()
        async with gateway:
            assert await (await app.submit(late)).result(30) == 1
            worker.drain()
            assert await running == "drained"


async def test_a_worker_that_waits_for_its_gateway_can_be_drained():
    app = perdure.App("http://127.0.0.1:9")
    async with asyncio.timeout(30), app:
        worker = app.worker()
        running = asyncio.create_task(worker.run())
        await asyncio.sleep(0.1)
        worker.drain()
        assert await running is None
