"""Waiting for tasks to end: by hint, by poll, for one, any or all, until a time."""

import asyncio
from collections.abc import Sequence

import pytest

from engine.making import DONE, KIND, ME, Bench, QuietHub
from perdure.domain.states import Reason, TaskState
from perdure.engine.requests import TaskRequest
from perdure.engine.wait import POLL_SECONDS, VERIFY_SECONDS, WaitEnded
from perdure.errors import Invalid, Malformed, Misuse, NotFound, StoreUnreachable, WaitTimedOut
from perdure.store.ledger import Submitted
from perdure.store.views import Ended
from perdure.store.wakeups import Topic

IDS = [f"0198c5a4-7f3e-7abc-8def-{n:012d}" for n in range(10)]


class Scripted:
    """Views in which tasks end when a test says so."""

    def __init__(self) -> None:
        self.known = set(IDS)
        self.over: set[str] = set()
        self.asked: list[int] = []
        self.away = False

    async def ended(self, organization: str, task_ids: Sequence[str]) -> list[Ended]:
        if self.away:
            raise StoreUnreachable("away")
        self.asked.append(len(task_ids))
        return [Ended(each, TaskState.SUCCEEDED, Reason.OK, None, None, None) for each in task_ids if each in self.over]

    async def task(self, organization: str, task_id: str) -> object | None:
        return object() if task_id in self.known else None


class Scene:
    def __init__(self) -> None:
        self.views, self.hub = Scripted(), QuietHub()
        self.wait = WaitEnded(self.views, self.hub.subscribe)  # type: ignore[arg-type]

    def begin(self, *task_ids: str, timeout: float | None = None, any_of: bool = False) -> "asyncio.Task[list[Ended]]":
        return asyncio.create_task(self.wait("default", task_ids, timeout, any_of))

    def end(self, *task_ids: str, hint: bool = True) -> None:
        self.views.over |= set(task_ids)
        if hint:
            self.hub.announce(Topic.ENDED)


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_what_has_ended_is_answered_at_once() -> None:
    scene = Scene()
    scene.end(*IDS)
    assert [each.id for each in await scene.wait("default", IDS[:3], None)] == IDS[:3]
    assert scene.hub.open == []


async def test_a_hint_wakes_whoever_waits() -> None:
    scene = Scene()
    waiting = scene.begin(IDS[0])
    await asyncio.sleep(1)
    assert not waiting.done()
    started = now()
    scene.end(IDS[0])
    assert [each.id for each in await waiting] == [IDS[0]]
    assert now() - started < 0.01


async def test_a_lost_hint_costs_one_poll() -> None:
    scene = Scene()
    waiting = scene.begin(IDS[0])
    await asyncio.sleep(1)
    started = now()
    scene.end(IDS[0], hint=False)
    await waiting
    assert now() - started <= POLL_SECONDS


async def test_all_wait_for_the_last_and_any_for_the_first() -> None:
    scene = Scene()
    every, some = scene.begin(*IDS), scene.begin(*IDS, any_of=True)
    await asyncio.sleep(1)
    scene.end(IDS[4])
    assert [each.id for each in await some] == [IDS[4]]
    await asyncio.sleep(10)
    assert not every.done()
    scene.end(*IDS)
    assert [each.id for each in await every] == IDS


async def test_one_question_serves_all_who_wait() -> None:
    scene = Scene()
    waiting = [scene.begin(each) for each in IDS]
    await asyncio.sleep(0.01)
    scene.views.asked.clear()
    scene.hub.announce(Topic.ENDED)
    await asyncio.sleep(0.01)
    assert scene.views.asked == [len(IDS)]
    assert len(scene.hub.open) == 1
    scene.end(*IDS)
    await asyncio.gather(*waiting)
    await asyncio.sleep(0)
    assert scene.hub.open == []


async def test_an_end_between_the_question_and_the_wait_is_not_missed() -> None:
    scene = Scene()
    ask = scene.views.ended

    async def ended_just_after(organization: str, task_ids: Sequence[str]) -> list[Ended]:
        found = await ask(organization, task_ids)
        scene.end(IDS[0])
        return found

    scene.views.ended = ended_just_after  # type: ignore[method-assign]
    started = now()
    await scene.wait("default", [IDS[0]], None)
    assert now() - started < 0.01


async def test_a_time_out_names_what_had_not_ended() -> None:
    scene = Scene()
    scene.end(IDS[0])
    with pytest.raises(WaitTimedOut) as error:
        await scene.wait("default", IDS[:3], 5.0)
    assert error.value.fields["task_ids"] == IDS[1:3]
    assert "2 of 3" in error.value.message
    assert scene.hub.open == [] or not await asyncio.sleep(0)


async def test_no_time_at_all_is_one_question() -> None:
    scene = Scene()
    with pytest.raises(WaitTimedOut):
        await scene.wait("default", [IDS[0]], 0)
    scene.end(IDS[0])
    assert len(await scene.wait("default", [IDS[0]], 0)) == 1


async def test_an_unknown_task_is_not_waited_for() -> None:
    scene = Scene()
    scene.views.known = {IDS[0]}
    with pytest.raises(NotFound) as error:
        await scene.wait("default", IDS[:2], None)
    assert error.value.fields["id"] == IDS[1]


async def test_bad_ids_and_times_are_refused() -> None:
    scene = Scene()
    with pytest.raises(Malformed):
        await scene.wait("default", ["nonsense"], None)
    with pytest.raises(Invalid):
        await scene.wait("default", [IDS[0]], -1.0)
    assert await scene.wait("default", [], None) == []


async def test_a_store_that_is_away_for_a_while_ends_no_wait() -> None:
    scene = Scene()
    waiting = scene.begin(IDS[0])
    await asyncio.sleep(1)
    scene.views.away = True
    await asyncio.sleep(60)
    scene.views.away = False
    scene.end(IDS[0], hint=False)
    assert len(await waiting) == 1


async def test_a_caller_that_gives_up_leaves_the_others_waiting() -> None:
    scene = Scene()
    one, two = scene.begin(IDS[0]), scene.begin(IDS[1])
    await asyncio.sleep(1)
    one.cancel()
    await asyncio.sleep(1)
    scene.end(IDS[1])
    assert len(await two) == 1


async def test_closing_tells_whoever_waits() -> None:
    scene = Scene()
    waiting = scene.begin(IDS[0])
    await asyncio.sleep(1)
    await scene.wait.close()
    with pytest.raises(Misuse):
        await waiting
    assert scene.hub.open == []


async def test_a_stream_of_hints_does_not_ask_without_end() -> None:
    scene = Scene()
    ask = scene.views.ended

    async def slowly(organization: str, task_ids: Sequence[str]) -> list[Ended]:
        await asyncio.sleep(0.01)
        return await ask(organization, task_ids)

    scene.views.ended = slowly  # type: ignore[method-assign]
    waiting = scene.begin(IDS[0])
    for _ in range(3_000):
        scene.hub.announce(Topic.ENDED)
        await asyncio.sleep(0.001)
    assert len(scene.views.asked) <= 3.0 / 0.03 + 3
    scene.end(IDS[0])
    await waiting


async def test_results_come_from_the_real_store(bench: Bench) -> None:
    await bench.worker()
    answers = await bench.engine.submit([TaskRequest(kind=KIND, payload=n) for n in range(20)], ME)
    ids = [answer.id for answer in answers if isinstance(answer, Submitted)]
    waiting = asyncio.create_task(bench.engine.wait_ended(ME.organization, ids, 60.0))
    await asyncio.sleep(1)
    for lease in await bench.engine.claim("w", 20):
        await bench.settle(lease, DONE)
    assert [each.id for each in await waiting] == ids


async def test_another_organizations_task_is_unknown(bench: Bench) -> None:
    task_id = await bench.submit()
    with pytest.raises(NotFound):
        await bench.engine.wait_ended("other", [task_id], 1.0)


async def test_what_is_removed_before_its_end_was_seen_is_not_waited_for_for_ever() -> None:
    scene = Scene()
    known = asyncio.create_task(scene.wait("default", IDS[:2], None, known=True))
    waiting = scene.begin(*IDS[2:4])
    await asyncio.sleep(POLL_SECONDS)
    scene.views.known -= {IDS[1], IDS[2]}
    for each, gone in ((known, IDS[1]), (waiting, IDS[2])):
        with pytest.raises(NotFound) as error:
            await asyncio.wait_for(each, VERIFY_SECONDS + 2 * POLL_SECONDS)
        assert error.value.fields["id"] == gone
