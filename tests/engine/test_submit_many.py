"""Many tasks in one call are stored in stretches: each task has its answer, whatever becomes of a stretch."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from engine.making import KIND, ME, Bench
from perdure.domain.task import Task
from perdure.engine import submit as submitting
from perdure.engine.requests import TaskRequest
from perdure.engine.submit import Submit
from perdure.errors import Invalid, PerdureError, StoreFull
from perdure.store.ledger import Submitted
from perdure.store.views import TaskFilter

STRETCH = 100
COUNT = 3 * STRETCH + 7


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred tasks are several stretches."""
    monkeypatch.setattr(submitting, "STRETCH", STRETCH)


class Failing:
    """A ledger that fails at some of its submits, beginning with the first as number 0."""

    def __init__(self, ledger: Any, error: Exception, at: Sequence[int]) -> None:
        self._ledger = ledger
        self._error = error
        self._at = at
        self.calls = 0

    async def submit(self, tasks: Sequence[Task]) -> list[Submitted | PerdureError]:
        number, self.calls = self.calls, self.calls + 1
        if number in self._at:
            raise self._error
        answers: list[Submitted | PerdureError] = await self._ledger.submit(tasks)
        return answers


def requests(count: int = COUNT, **given: Any) -> list[TaskRequest]:
    return [TaskRequest(kind=KIND, payload=n, **given) for n in range(count)]


def failing(bench: Bench, error: Exception, *at: int) -> Submit:
    """The engine's submit on a ledger that fails."""
    engine = bench.engine
    ledger: Any = Failing(bench.store.ledger, error, at)
    made = engine._submit
    return Submit(ledger, made._kinds, made._names, bench.ids, bench.clock, made._settings)


async def stored(bench: Bench) -> dict[str, Any]:
    """Every stored task: id and payload."""
    ids: list[str] = []
    cursor = None
    while True:
        page = await bench.engine.views.tasks(ME.organization, TaskFilter(), 1_000, cursor)
        ids += [each.id for each in page.rows]
        if (cursor := page.cursor) is None:
            return {id: (await bench.view(id)).payload for id in ids}


async def test_each_task_has_its_own_answer_in_its_own_place(bench: Bench):
    answers = await bench.engine.submit(requests(), ME)
    found = await stored(bench)
    assert len(answers) == len(found) == COUNT
    for n, answer in enumerate(answers):
        assert isinstance(answer, Submitted)
        assert found[answer.id].data == str(n).encode()


async def test_a_refused_task_in_any_stretch_costs_only_itself(bench: Bench):
    asked = requests()
    bad = {3, STRETCH, 2 * STRETCH + 5, COUNT - 1}
    for place in bad:
        asked[place] = TaskRequest(kind=KIND, payload=place, priority=77)
    answers = await bench.engine.submit(asked, ME)
    assert {n for n, answer in enumerate(answers) if isinstance(answer, Invalid)} == bad
    assert len(await stored(bench)) == COUNT - len(bad)


async def test_a_stretch_of_refused_tasks_alone_asks_nothing_of_the_store(bench: Bench):
    submit = failing(bench, StoreFull("no space"), 0)
    answers = await submit(requests(2 * STRETCH, priority=77), ME)
    assert [type(each) for each in answers] == [Invalid] * 2 * STRETCH


async def test_one_key_in_two_stretches_makes_one_task(bench: Bench):
    asked = requests()
    for place in (0, STRETCH - 1, STRETCH, COUNT - 1):
        asked[place] = TaskRequest(kind=KIND, payload="one", idempotency_key="k")
    answers = await bench.engine.submit(asked, ME)
    ids = [answer.id for answer in answers if isinstance(answer, Submitted)]
    assert len(ids) == COUNT
    assert len({ids[place] for place in (0, STRETCH - 1, STRETCH, COUNT - 1)}) == 1
    assert len(set(ids)) == COUNT - 3


async def test_what_kept_one_stretch_from_being_stored_is_the_answer_of_its_tasks(bench: Bench):
    answers = await failing(bench, StoreFull("no space"), 1)(requests(), ME)
    lost = range(STRETCH, 2 * STRETCH)
    assert {n for n, answer in enumerate(answers) if isinstance(answer, StoreFull)} == set(lost)
    assert set(await stored(bench)) == {answer.id for answer in answers if isinstance(answer, Submitted)}


async def test_what_kept_every_stretch_from_being_stored_is_raised(bench: Bench):
    with pytest.raises(StoreFull):
        await failing(bench, StoreFull("no space"), *range(10))(requests(), ME)
    assert not await stored(bench)


async def test_a_defect_is_raised_as_it_is(bench: Bench):
    with pytest.raises(KeyError):
        await failing(bench, KeyError("a defect"), 2)(requests(), ME)


async def test_a_caller_that_is_cancelled_leaves_no_task_half_stored(bench: Bench):
    submitting = asyncio.create_task(bench.engine.submit(requests(), ME))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    submitting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await submitting
    count = len(await stored(bench))
    assert count % STRETCH == 0
