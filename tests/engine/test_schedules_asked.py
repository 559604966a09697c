"""Instants that somebody asks for, what is shown of schedules, and declared sets, in virtual time."""

from typing import Any

import pytest

from engine.making import KIND, ME, Bench
from engine.test_schedules import MINUTE, SECOND, came, declare, definition, fire, pass_, stands
from perdure.engine.apply_schedules import ApplySchedules, Step
from perdure.engine.requests import JobRequest, JobTaskRequest, KindDefinition, Principal, TaskRequest
from perdure.engine.schedule_definition import ScheduleDefinition
from perdure.errors import IdempotencyConflict, Invalid, Malformed, NotFound, Overloaded


async def test_a_trigger_makes_one_now_even_if_paused_or_overlapping(bench: Bench) -> None:
    await declare(bench)
    await bench.engine.schedules.pause("s", ME)
    made = [await bench.engine.schedules.trigger("s", Principal("ann")) for _ in range(3)]
    assert len({each.task_id for each in made}) == 3
    task = await bench.view(made[0].task_id or "")
    assert (task.principal, task.initiator) == ("schedule:s", "ann")
    assert [each[0] for each in await came(bench)] == ["fired"] * 3
    with pytest.raises(NotFound):
        await bench.engine.schedules.trigger("nobody", ME)


async def test_a_trigger_that_is_refused_says_why(bench: Bench) -> None:
    await declare(bench)
    await bench.engine.configure_queue("default", ME, depth=0)
    with pytest.raises(Overloaded):
        await bench.engine.schedules.trigger("s", ME)


async def test_a_trigger_under_a_key_that_was_used_makes_nothing_more_and_tells_what_was_made(bench: Bench) -> None:
    await declare(bench)
    schedules = bench.engine.schedules
    first = await schedules.trigger("s", ME, "today")
    await pass_(bench, 30)
    again = await schedules.trigger("s", ME, "today")
    assert again == first._replace(replayed=True)
    other = await schedules.trigger("s", ME, "tomorrow")
    assert other.task_id != first.task_id
    assert [each[0] for each in await came(bench)] == ["fired"] * 2
    await schedules.put("s", definition(task=TaskRequest(kind=KIND, queue="elsewhere")), ME)
    with pytest.raises(IdempotencyConflict):
        await schedules.trigger("s", ME, "today")
    assert [each[0] for each in await came(bench)] == ["fired"] * 2


async def test_a_trigger_of_a_job_under_a_key_makes_it_once(bench: Bench) -> None:
    job = JobRequest(name="report", tasks=[JobTaskRequest(name="first", kind=KIND)])
    await bench.engine.schedules.put("s", ScheduleDefinition(cron="0 0 * * *", job=job), ME)
    first = await bench.engine.schedules.trigger("s", ME, "today")
    again = await bench.engine.schedules.trigger("s", ME, "today")
    assert (again.job_id, again.task_id, again.replayed) == (first.job_id, None, True)
    assert first.job_id is not None


async def test_a_backfill_makes_each_instant_of_its_range_once(bench: Bench) -> None:
    await declare(bench)
    await pass_(bench, 600)
    now = await bench.store.ledger.now_us()
    start = now - now % MINUTE - 5 * MINUTE
    filled = await bench.engine.schedules.backfill("s", start, start + 3 * MINUTE, ME)
    assert [each.instant_us - start for each in filled.made] == [0, MINUTE, 2 * MINUTE]
    again = await bench.engine.schedules.backfill("s", start - MINUTE, start + 3 * MINUTE, ME)
    assert [each.replayed for each in again.made] == [False, True, True, True]
    await fire(bench)
    fired = [each for each in (await bench.engine.schedules.fires("s", ME, 100)).fires if each.outcome == "fired"]
    assert len({each.first_us for each in fired}) == len(fired)


@pytest.mark.parametrize(("start", "end"), [(0, 0), (5, 1), (0, 10**13), (-(10**9) * SECOND, 0)])
async def test_a_backfill_of_no_time_of_the_future_or_of_too_much_is_refused(
    bench: Bench, start: int, end: int
) -> None:
    await declare(bench)
    now = await bench.store.ledger.now_us()
    with pytest.raises(Invalid):
        await bench.engine.schedules.backfill("s", now + start, now + end, ME)


async def test_a_preview_is_what_will_come(bench: Bench) -> None:
    view = await declare(bench, cron="0 3 * * *", time_zone="Europe/Berlin")
    previewed = await bench.engine.schedules.preview("s", 3, ME)
    assert previewed[0] == view.next_us
    later = await bench.engine.schedules.preview("s", 2, ME, previewed[0])
    assert later == previewed[1:]
    for count in (0, 1001, 2.5):
        with pytest.raises(Invalid):
            await bench.engine.schedules.preview("s", count, ME)  # type: ignore[arg-type]


async def test_pages_go_on_where_the_last_one_ended(bench: Bench) -> None:
    for name in "cab":
        await declare(bench, name)
    first = await bench.engine.schedules.page(ME, 2)
    second = await bench.engine.schedules.page(ME, 2, first.cursor)
    assert [each.name for each in (*first.schedules, *second.schedules)] == ["a", "b", "c"]
    assert second.cursor is None
    with pytest.raises(Malformed):
        await bench.engine.schedules.fires("a", ME, 10, "nonsense")
    with pytest.raises(NotFound):
        await bench.engine.schedules.fires("nobody", ME, 10)


async def test_another_organization_sees_and_touches_nothing(bench: Bench) -> None:
    await declare(bench)
    other = Principal("eve", "other")
    assert await bench.engine.schedules.get("s", other) is None
    assert (await bench.engine.schedules.page(other, 10)).schedules == []
    assert not await bench.engine.schedules.delete("s", other)
    with pytest.raises(NotFound):
        await bench.engine.schedules.pause("s", other)


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"task": {"kind": "taker", "payload": {"x": "one"}}}, "payload.x"),
        ({"task": {"kind": "taker"}}, "payload"),
        ({"task": {"kind": KIND}, "cron": "61 3 * * *"}, "cron"),
        ({"task": {"kind": KIND, "payload": "\0"}}, "task.payload"),
    ],
)
async def test_a_dry_run_refuses_what_would_be_refused(bench: Bench, wrong: dict[str, Any], field: str) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    await bench.engine.declare([KindDefinition(kind="taker", schema=schema)], ME)
    apply = ApplySchedules(bench.engine.schedules)
    await apply("crew", {"a": definition(), "gone": definition()}, ME)
    before = await bench.engine.schedules.page(ME, 10)
    for name in ("a", "b"):
        wanted = {"a": definition(), name: {"every": 60, "task": {"kind": KIND}}}
        assert Step("gone", "delete") in await apply("crew", wanted, ME, dry_run=True)
        said = {**({} if "cron" in wrong else {"cron": "@daily"}), **wrong}
        with pytest.raises(Invalid) as dry:
            await apply("crew", {"a": definition(), name: said}, ME, dry_run=True)
        assert await bench.engine.schedules.page(ME, 10) == before
        with pytest.raises(Invalid) as refusal:
            await apply("crew", {"a": definition(), name: said}, ME)
        assert (dry.value.message, dry.value.fields) == (refusal.value.message, refusal.value.fields)
        assert dry.value.fields["schedule"] == name
        assert dry.value.fields["field"] == field


async def test_a_set_converges(bench: Bench) -> None:
    apply = ApplySchedules(bench.engine.schedules)
    await declare(bench, "by-hand")
    wanted = {"a": definition(), "b": {"every": 60, "task": {"kind": KIND}}}
    planned = await apply("crew", wanted, ME, dry_run=True)
    assert planned == [Step("a", "create"), Step("b", "create")]
    assert await bench.engine.schedules.get("a", ME) is None
    assert await apply("crew", wanted, ME) == planned
    assert {each.action for each in await apply("crew", wanted, ME)} == {"keep"}
    await bench.engine.schedules.pause("a", ME)
    changed = {"a": definition(catch_up=5), "c": definition()}
    assert await apply("crew", changed, ME) == [
        Step("a", "change", ("catch_up",)),
        Step("c", "create"),
        Step("b", "delete"),
    ]
    names = [each.name for each in (await bench.engine.schedules.page(ME, 10)).schedules]
    assert names == ["a", "by-hand", "c"]
    assert (await stands(bench, "a")).paused
    with pytest.raises(Invalid, match="belongs to set 'crew'"):
        await apply("others", {"a": definition()}, ME)
