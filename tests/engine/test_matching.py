"""Doing something to all tasks that a filter lets through: bounded steps, each with a place to go on from."""

import pytest

from engine.making import ME, Bench
from perdure.engine.act_on_matching import Act, Matching, Step
from perdure.engine.requests import Principal, TaskRequest
from perdure.errors import Invalid, Malformed
from perdure.store.views import TaskFilter

YOU = Principal("you")


async def submitted(bench: Bench, count: int, by: Principal = ME, **given: object) -> list[str]:
    """Ids of tasks that wait."""
    answers = await bench.engine.submit([TaskRequest(kind="k", **given) for _ in range(count)], by)  # type: ignore[arg-type]
    return [each.id for each in answers]  # type: ignore[union-attr]


async def state(bench: Bench, task_id: str) -> str:
    view = await bench.engine.views.task(ME.organization, task_id)
    assert view is not None
    return view.state


async def test_steps_meet_every_task_once_and_end(bench: Bench) -> None:
    ids = await submitted(bench, 5)
    await submitted(bench, 2, YOU)
    asked = Matching(Act.CANCEL, TaskFilter(submitters=(ME.name,)), limit=2, text="enough")
    counted = 0
    while True:
        step = await bench.engine.act_on_matching(asked, YOU)
        counted += step.counts.get("cancelled", 0)
        if step.cursor is None:
            break
        asked = asked._replace(cursor=step.cursor)
    assert counted == 5
    assert [await state(bench, each) for each in ids] == ["cancelled"] * 5
    view = await bench.engine.views.task(ME.organization, ids[0])
    assert view is not None
    assert view.cancel is not None
    assert (view.cancel.actor, view.cancel.text) == ("you", "enough")
    again = await bench.engine.act_on_matching(asked._replace(cursor=None), YOU)
    assert again == Step(0, {}, [], None)


async def test_what_is_submitted_meanwhile_is_not_met_by_going_on(bench: Bench) -> None:
    await submitted(bench, 3)
    asked = Matching(Act.CANCEL, TaskFilter(kinds=("k",)), limit=1)
    step = await bench.engine.act_on_matching(asked, ME)
    [late] = await submitted(bench, 1)
    while step.cursor is not None:
        step = await bench.engine.act_on_matching(asked._replace(cursor=step.cursor), ME)
    assert await state(bench, late) == "queued"


async def test_a_dry_run_only_counts(bench: Bench) -> None:
    ids = await submitted(bench, 3)
    step = await bench.engine.act_on_matching(Matching(Act.CANCEL, TaskFilter(kinds=("k",)), dry_run=True), ME)
    assert (step.matched, step.counts) == (3, {})
    assert await state(bench, ids[0]) == "queued"


@pytest.mark.parametrize(
    "asked",
    [
        Matching(Act.CANCEL, TaskFilter()),
        Matching(Act.CANCEL, TaskFilter(kinds=("k",), discarded=True)),
        Matching(Act.CANCEL, TaskFilter(kinds=("k",), ended_from_us=1)),
        Matching(Act.CANCEL, TaskFilter(kinds=("k",)), limit=0),
        Matching(Act.REQUEUE, TaskFilter(), rate=0),
        Matching(Act.REQUEUE, TaskFilter(states=("queued",))),  # type: ignore[arg-type]
    ],
)
async def test_what_does_not_fit_is_refused(bench: Bench, asked: Matching) -> None:
    with pytest.raises(Invalid):
        await bench.engine.act_on_matching(asked, ME)


async def test_a_cursor_of_another_filter_is_refused(bench: Bench) -> None:
    await submitted(bench, 3)
    step = await bench.engine.act_on_matching(Matching(Act.CANCEL, TaskFilter(kinds=("k",)), limit=1), ME)
    with pytest.raises(Malformed):
        await bench.engine.act_on_matching(Matching(Act.CANCEL, TaskFilter(kinds=("j",)), 1, step.cursor), ME)
