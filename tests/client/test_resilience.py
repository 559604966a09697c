"""Bad networks and killed gateways: nothing acknowledged is lost, nothing is done twice beyond what leases allow."""

import asyncio
import collections
import itertools
import random

import pytest

import perdure
from chaos_proxy import ChaosProxy, Fault
from client.serving import GatewayProcess, served
from perdure.domain.states import TaskState
from perdure.gateway.limits import GatewayLimits

BAD = [Fault.CUT_BEFORE, Fault.CUT_AFTER, Fault.CUT_WITHIN, Fault.DELAY, Fault.SLICE, Fault.REPEAT]


def app_of(url, ran=None):
    app = perdure.App(url)

    @app.task("work", lease=5)
    async def work(number: int, seconds: float = 0.0) -> int:
        if ran is not None:
            ran[number] += 1
        await asyncio.sleep(seconds)
        return number * 2

    return app


async def test_a_client_that_sends_too_much_goes_on_when_it_may(tmp_path):
    async with served(tmp_path / "served.db", GatewayLimits(client_rate=2)) as url, app_of(url) as app:
        handles = [await app.submit("work", number=number) for number in range(7)]
        assert len({each.id for each in handles}) == 7


async def totals(app):
    operations = await app.operations()
    return await operations.views.overview("default")


@pytest.mark.parametrize("fault", BAD, ids=lambda each: each.value)
async def test_a_submit_whose_answer_is_lost_makes_one_task(url, fault):
    faults = itertools.chain([Fault.NONE, fault, fault], itertools.repeat(Fault.NONE))

    def choose(request):
        return next(faults) if request.startswith(b"POST /v1/tasks ") else Fault.NONE

    async with ChaosProxy(url, choose) as proxy, app_of(proxy.url) as app:
        for number in range(4):
            handle = await app.submit("work", number=number)
            assert not handle.replayed or fault in (Fault.CUT_AFTER, Fault.CUT_WITHIN)
        jobs = await asyncio.gather(*(job.submit() for job in [_job(app)]))
        assert len(jobs) == 1
        assert (await totals(app)).tasks == 5
        assert proxy.done[fault] == 2


def _job(app):
    with app.job("alone") as job:
        job.add("work", payload={"number": 9}, name="only")
    return job


@pytest.mark.parametrize("fault", BAD, ids=lambda each: each.value)
@pytest.mark.parametrize("verb", [b"claim", b"settle", b"renew", b"register", b"hints", b"heartbeat"])
async def test_a_worker_gets_on_whatever_happens_to_one_kind_of_answer(url, fault, verb):
    faults = itertools.cycle([fault, Fault.NONE])
    ran = collections.Counter()

    def choose(request):
        return next(faults) if b"/v1/worker/" + verb in request.split(b"\r\n")[0] else Fault.NONE

    async with ChaosProxy(url, choose) as proxy, app_of(url, ran) as direct, app_of(proxy.url, ran) as app:
        handles = await direct.submit_many([direct.call("work", number=number) for number in range(30)])
        async with app.worker(concurrency=5):
            assert await asyncio.gather(*(each.result(30) for each in handles)) == [n * 2 for n in range(30)]
        if verb in (b"claim", b"settle"):
            assert proxy.done[fault] >= 1
    assert set(ran.values()) == {1}


async def test_a_settle_that_is_sent_twice_is_applied_once(url):
    async with app_of(url) as app:
        handle = await app.submit("work", number=1)
        operations = await app.operations()
        settled = asyncio.Event()

        def choose(request):
            if b"/settle " not in request:
                return Fault.NONE
            if settled.is_set():
                return Fault.NONE
            settled.set()
            return Fault.CUT_AFTER

        async with ChaosProxy(url, choose) as proxy, app_of(proxy.url) as other:
            async with other.worker():
                assert await handle.result(30) == 2
                await settled.wait()
            assert proxy.done[Fault.CUT_AFTER] == 1
        view = await handle.status()
        assert (view.state, view.losses) == (TaskState.SUCCEEDED, 0)
        assert len(await operations.views.attempts("default", handle.id)) == 1


async def test_a_gateway_that_is_killed_again_and_again_costs_no_task(tmp_path):
    ran = collections.Counter()
    chance = random.Random(7)
    async with GatewayProcess(tmp_path / "killed.db") as gateway, app_of(gateway.url, ran) as app:
        async with app.worker(concurrency=10), asyncio.timeout(90):
            waiting = []

            async def submit_all():
                for number in range(60):
                    waiting.append(await app.submit("work", number=number, seconds=0.1))
                    await asyncio.sleep(0.05)

            submitting = asyncio.create_task(submit_all())
            for _ in range(3):
                await asyncio.sleep(chance.uniform(0.5, 1.2))
                await gateway.kill()
                await asyncio.sleep(chance.uniform(0.0, 0.4))
                await gateway.start()
            await submitting
            results = await asyncio.gather(*(each.result(60) for each in waiting))
        assert results == [number * 2 for number in range(60)]
        overview = await totals(app)
        assert (overview.tasks, overview.results) == (60, 60)
        views = [await each.status() for each in waiting]
        assert sum(ran.values()) == 60 + sum(view.losses for view in views)
