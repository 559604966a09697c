"""The runner of duties only waits and calls: by interval, by due time and by hint, whatever fails."""

import asyncio
import logging
from collections.abc import Callable

import pytest

from engine.making import DONE, KIND, ME, Bench, QuietHub
from perdure.ambient import Chance
from perdure.domain.states import TaskState
from perdure.engine.duties import DutyRunner
from perdure.engine.requests import KindDefinition, TaskRequest
from perdure.errors import PerdureError, StoreUnreachable, StoreUnusable
from perdure.store.ledger import Submitted, Swept
from perdure.store.wakeups import Topic
from virtual_time import VirtualClock, VirtualLoop

SECOND = 1_000_000
NOTHING = Swept(0, None, False)


class Scripted:
    """A duty that notes when it ran and answers as it is told."""

    def __init__(self, answer: Callable[[int], Swept], wakes_on: Topic = Topic.READY) -> None:
        self.name = "scripted"
        self.interval_us = 30 * SECOND
        self.rest_us = 50_000
        self.wakes_on = wakes_on
        self.ran_at: list[float] = []
        self._answer = answer

    async def run_once(self, now_us: int) -> Swept:
        self.ran_at.append(asyncio.get_running_loop().time() - 1_000.0)
        return self._answer(len(self.ran_at))


class StoreTime:
    """A store whose time is that of the loop, and some."""

    async def now_us(self) -> int:
        return store_us()


def store_us() -> int:
    return round(asyncio.get_running_loop().time() * SECOND) + 77 * SECOND


def runner(hub: QuietHub, *duties: Scripted) -> DutyRunner:
    clock = VirtualClock(asyncio.get_running_loop())
    return DutyRunner(duties, StoreTime(), hub, clock, Chance(3))


async def test_an_idle_duty_runs_once_an_interval() -> None:
    duty = Scripted(lambda _: NOTHING)
    async with runner(QuietHub(), duty):
        await asyncio.sleep(60 * 10)
    assert 20 <= len(duty.ran_at) <= 24


async def test_a_duty_runs_when_what_it_waits_for_is_due() -> None:
    start_us = store_us()
    duty = Scripted(lambda run: Swept(0, start_us + 7 * SECOND, False) if run == 1 else NOTHING)
    async with runner(QuietHub(), duty):
        await asyncio.sleep(10)
    assert duty.ran_at[1] == pytest.approx(7.0, abs=0.01)


async def test_what_is_due_and_does_not_move_keeps_nobody_busy() -> None:
    duty = Scripted(lambda _: Swept(0, 0, False))
    async with runner(QuietHub(), duty):
        await asyncio.sleep(10)
    assert len(duty.ran_at) <= 10 / 0.05 + 2


async def test_more_is_done_at_once() -> None:
    duty = Scripted(lambda run: Swept(5, None, run < 20))
    async with runner(QuietHub(), duty):
        await asyncio.sleep(2)
    assert len(duty.ran_at) == 20


async def test_a_hint_is_followed_within_the_rest() -> None:
    hub = QuietHub()
    duty = Scripted(lambda _: NOTHING)
    async with runner(hub, duty):
        await asyncio.sleep(5)
        hub.announce(Topic.ENDED)
        await asyncio.sleep(1)
        assert len(duty.ran_at) == 1
        hub.announce(Topic.READY)
        await asyncio.sleep(0.01)
        assert len(duty.ran_at) == 2


async def test_a_stream_of_hints_is_followed_at_a_bounded_rate() -> None:
    hub = QuietHub()
    duty = Scripted(lambda _: NOTHING)
    async with runner(hub, duty):
        for _ in range(1_000):
            hub.announce(Topic.READY)
            await asyncio.sleep(0.001)
    assert 3 <= len(duty.ran_at) <= 10
    assert duty.ran_at[2] - duty.ran_at[1] == pytest.approx(0.05, abs=0.01)


async def test_hints_that_lead_to_something_are_followed_at_the_full_rate() -> None:
    hub = QuietHub()
    duty = Scripted(lambda _: Swept(1, None, False))
    async with runner(hub, duty):
        for _ in range(1_000):
            hub.announce(Topic.READY)
            await asyncio.sleep(0.001)
    assert 15 <= len(duty.ran_at) <= 22


async def test_what_is_known_to_be_due_is_not_late_under_a_stream_of_hints() -> None:
    hub = QuietHub()
    start_us = store_us()
    due_us = [start_us + round(seconds * SECOND) for seconds in (1.5, 1.51, 1.97)]
    duty = Scripted(lambda _: Swept(0, next((due for due in due_us if due > store_us()), None), False))
    async with runner(hub, duty):
        for _ in range(3_000):
            hub.announce(Topic.READY)
            await asyncio.sleep(0.001)
    for due in due_us:
        late = min(ran - (due - start_us) / SECOND for ran in duty.ran_at if ran >= (due - start_us) / SECOND)
        assert late < 0.1


def fail(error: Exception, times: int) -> Callable[[int], Swept]:
    def answer(run: int) -> Swept:
        if run <= times:
            raise error
        return NOTHING

    return answer


async def test_a_duty_that_fails_is_logged_backs_off_and_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    broken, well = Scripted(fail(ValueError("a defect"), 6)), Scripted(lambda _: NOTHING)
    async with runner(QuietHub(), broken, well):
        await asyncio.sleep(60)
    waits = [later - earlier for earlier, later in zip(broken.ran_at, broken.ran_at[1:], strict=False)]
    assert waits[0] < 0.5
    assert waits[1] > waits[0]
    assert all(wait <= 5.6 for wait in waits[:6])
    assert len(broken.ran_at) >= 8
    assert len(well.ran_at) >= 2
    assert "a defect" in caplog.text


@pytest.mark.parametrize("error", [StoreUnreachable("gone"), StoreUnusable("the role may not")])
async def test_a_store_that_cannot_be_used_for_hours_is_told_of_in_a_line_and_does_not_end_the_runner(
    error: PerdureError, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        duty = Scripted(fail(error, 1_000))
        async with runner(QuietHub(), duty):
            await asyncio.sleep(3 * 3600)
    assert len(duty.ran_at) > 1_000
    [record] = caplog.records
    assert record.exc_info is None


async def test_stopping_ends_a_run_that_hangs_and_closes_what_was_open() -> None:
    class Hangs(Scripted):
        async def run_once(self, now_us: int) -> Swept:
            await asyncio.sleep(1e6)
            return NOTHING

    hub = QuietHub()
    running = runner(hub, Hangs(lambda _: NOTHING))
    running.start()
    running.start()
    await asyncio.sleep(1)
    assert [task.get_name() for task in asyncio.all_tasks() if "duty" in task.get_name()] == ["perdure-duty-scripted"]
    before = asyncio.get_running_loop().time()
    await running.stop()
    await running.stop()
    assert asyncio.get_running_loop().time() == before
    assert hub.open == []


async def test_delayed_tasks_are_queued_within_100_ms_of_their_time(bench: Bench) -> None:
    delays = [0.01, 0.2, 1.0, 29.99, 45.0, 900.0]
    started_us = await bench.store.ledger.now_us()
    async with bench.engine.duty_runner():
        await asyncio.sleep(10)
        submitted_us = await bench.store.ledger.now_us()
        answers = await bench.engine.submit([TaskRequest(kind=KIND, delay=delay) for delay in delays], ME)
        await asyncio.sleep(1_000)
    assert submitted_us > started_us
    for delay, answer in zip(delays, answers, strict=True):
        assert isinstance(answer, Submitted)
        events = await bench.engine.views.events(ME.organization, answer.id)
        (queued_us,) = [event.at_us for event in events if event.type in ("queued", "promoted", "promote")]
        assert 0 <= queued_us - submitted_us - round(delay * SECOND) <= 100_000, delay


async def test_what_became_due_while_nobody_looked_is_queued_at_once(bench: Bench) -> None:
    task_id = await bench.submit(delay=30 * 86_400.0)
    async with bench.engine.duty_runner():
        await asyncio.sleep(1)
        assert (await bench.view(task_id)).state == TaskState.PENDING
    skip(30 * 86_400.0)
    async with bench.engine.duty_runner():
        await asyncio.sleep(0.1)
        assert (await bench.view(task_id)).state == TaskState.QUEUED


def skip(seconds: float) -> None:
    """Let time pass in which nothing runs."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.jump(seconds)


async def test_a_task_expires_in_a_paused_queue(bench: Bench) -> None:
    await bench.engine.pause_queue("default", ME)
    task_id = await bench.submit(ttl=60.0)
    async with bench.engine.duty_runner():
        await asyncio.sleep(90)
    assert (await bench.view(task_id)).state == TaskState.EXPIRED


async def test_an_unroutable_task_fails_while_workers_serve_its_queue(bench: Bench) -> None:
    task_id = await bench.submit(kind="nobody.has")
    async with bench.engine.duty_runner():
        await asyncio.sleep(600)
        skip(2 * 3600)
        assert (await bench.view(task_id)).state == TaskState.QUEUED
        await bench.worker()
        for _ in range(65):
            await bench.engine.heartbeat("w", 100)
            await asyncio.sleep(60)
    assert (await bench.view(task_id)).reason == "unroutable"


async def test_what_has_ended_is_removed_after_its_retention(bench: Bench) -> None:
    await bench.worker()
    task_id = await bench.submit()
    await bench.settle(await bench.lease(), DONE)
    async with bench.engine.duty_runner():
        skip(6.9 * 86_400)
        await asyncio.sleep(120)
        assert await bench.engine.views.task(ME.organization, task_id) is not None
        skip(0.1 * 86_400)
        await asyncio.sleep(120)
    assert await bench.engine.views.task(ME.organization, task_id) is None


async def test_an_end_state_and_a_kind_are_kept_as_long_as_is_said_of_them(bench: Bench) -> None:
    await bench.worker(kinds=(KIND, "short"))
    await bench.engine.declare([KindDefinition(kind="short", retention=60, result_retention=30)], ME)
    short, long = await bench.submit(kind="short"), await bench.submit()
    for _ in range(2):
        await bench.settle(await bench.lease(), DONE)
    (retain,) = [
        each for each in bench.engine_with(retention_by_state={"succeeded": 600}).duties() if each.name == "retain"
    ]
    left: list[list[bool]] = []
    for _ in range(3):
        skip(31)
        await retain.run_once(0)
        left.append([await bench.engine.views.task(ME.organization, each) is not None for each in (short, long)])
        if left[-1][0]:
            assert (await bench.view(short)).result is None
            assert (await bench.view(long)).result == DONE.result
    assert left == [[True, True], [False, True], [False, True]]
    skip(600)
    await retain.run_once(0)
    assert await bench.engine.views.task(ME.organization, long) is None


async def test_idle_duties_cost_less_than_thirty_runs_a_minute(bench: Bench) -> None:
    runs: list[str] = []
    duties = bench.engine.duties()
    for duty in duties:

        def counted(run_once: Callable[[int], object], name: str) -> Callable[[int], object]:
            async def run(now_us: int) -> object:
                runs.append(name)
                return await run_once(now_us)  # type: ignore[misc]

            return run

        duty.run_once = counted(duty.run_once, duty.name)  # type: ignore[method-assign, assignment]
    async with DutyRunner(duties, bench.store.ledger, bench.store.wakeups, bench.clock, Chance(1)):
        await asyncio.sleep(60)
        runs.clear()
        await asyncio.sleep(600)
    assert len(runs) / 10 < 30


async def test_a_duty_for_which_nothing_can_come_runs_rarely_until_something_is_announced() -> None:
    hub = QuietHub()
    duty = Scripted(lambda _: Swept(0, None, False, quiet=True), wakes_on=Topic.CONTROL)
    async with runner(hub, duty):
        await asyncio.sleep(65)
        assert len(duty.ran_at) == 2
        hub.announce(Topic.READY)
        await asyncio.sleep(0.1)
        assert len(duty.ran_at) == 2
        await asyncio.sleep(30)
        assert len(duty.ran_at) == 3
        hub.announce(Topic.CONTROL)
        await asyncio.sleep(0.1)
        assert len(duty.ran_at) == 4
