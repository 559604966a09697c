"""Schedules in virtual time: declared, fired, paused, caught up with, asked for, converged."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from engine.making import DONE, KIND, ME, Bench
from perdure.domain.states import TaskState
from perdure.engine.definitions import NONE
from perdure.engine.requests import JobRequest, JobTaskRequest, KindDefinition, TaskRequest
from perdure.engine.schedule_definition import ScheduleDefinition
from perdure.engine.schedule_views import ScheduleView
from perdure.errors import Invalid, PreconditionFailed
from perdure.store.ledger import Swept

SECOND = 1_000_000
MINUTE = 60 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def definition(**given: Any) -> ScheduleDefinition:
    """A task each minute, unless something else is said."""
    usual: dict[str, Any] = {"task": TaskRequest(kind=KIND)}
    if not {"cron", "every", "at"} & given.keys():
        usual["cron"] = "* * * * *"
    if "job" in given:
        del usual["task"]
    return ScheduleDefinition(**{**usual, **given})


async def declare(bench: Bench, name: str = "s", **given: Any) -> ScheduleView:
    return await bench.engine.schedules.put(name, definition(**given), ME)


async def fire(bench: Bench) -> Swept:
    return await bench.run_duty("fire_schedules")


async def pass_(bench: Bench, seconds: float) -> None:
    await asyncio.sleep(seconds)


async def came(bench: Bench, name: str = "s") -> list[tuple[str, str | None, int]]:
    """What came of the instants, the first one first."""
    page = await bench.engine.schedules.fires(name, ME, 1000)
    return [(each.outcome, each.reason, each.instants) for each in reversed(page.fires)]


async def stands(bench: Bench, name: str = "s") -> ScheduleView:
    found = await bench.engine.schedules.get(name, ME)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        ({"rows": [1, "a\0"]}, "task.payload.rows[1]"),
        ({"rows": {"\0": 1}}, "task.payload.rows"),
        ("\0", "task.payload"),
    ],
)
async def test_what_not_every_store_can_look_into_is_refused_by_name(bench: Bench, payload: Any, field: str) -> None:
    with pytest.raises(Invalid, match="NUL") as refusal:
        await declare(bench, task=TaskRequest(kind=KIND, payload=payload))
    assert refusal.value.fields["field"] == field
    assert await bench.engine.schedules.get("s", ME) is None
    await declare(bench, task=TaskRequest(kind=KIND, payload=["\\u0000"]))


async def test_a_schedule_makes_a_task_at_each_instant_while_the_duty_runs(bench: Bench) -> None:
    view = await declare(bench, overlap="allow")
    assert view.created
    assert view.next_us is not None
    assert view.next_us % MINUTE == 0
    async with bench.engine.duty_runner():
        await asyncio.sleep(5 * 60 + 1)
    fires = (await bench.engine.schedules.fires("s", ME, 100)).fires
    assert [each.first_us for each in reversed(fires)] == [view.next_us + MINUTE * n for n in range(5)]
    assert all(each.at_us - each.first_us < SECOND for each in fires)
    task = await bench.view(fires[0].task_id or "")
    assert (task.state, task.kind, task.principal) == (TaskState.QUEUED, KIND, "schedule:s")


async def test_a_schedule_is_heard_of_at_once_and_an_idle_store_is_asked_twice_a_minute(bench: Bench) -> None:
    (duty,) = [each for each in bench.engine.duties() if each.name == "fire_schedules"]
    runs = 0

    class Counted:
        name, interval_us, wakes_on, rest_us = duty.name, duty.interval_us, duty.wakes_on, duty.rest_us

        async def run_once(self, now_us: int) -> Swept:
            nonlocal runs
            runs += 1
            return await duty.run_once(now_us)

    from perdure.ambient import Chance
    from perdure.engine.duties import DutyRunner

    async with DutyRunner([Counted()], bench.store.ledger, bench.store.wakeups, bench.clock, Chance(1)):
        await asyncio.sleep(600)
        assert runs < 30
        await declare(bench, every=2.0, overlap="allow")
        await asyncio.sleep(6.5)
    assert await came(bench) == [("fired", None, 1)] * 3


async def test_nothing_comes_of_an_instant_that_passes_while_the_schedule_is_being_stored(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    schedules, delays = bench.store.schedules, [1.5 * 60, 0.0]
    put = schedules.put

    async def slowly(*given: Any, **named: Any) -> Any:
        await pass_(bench, delays.pop(0))
        return await put(*given, **named)

    monkeypatch.setattr(schedules, "put", slowly)
    view = await declare(bench)
    assert not delays
    assert view.next_us is not None
    assert view.declared_us < view.next_us <= view.declared_us + MINUTE
    await pass_(bench, 60)
    await fire(bench)
    assert [each.first_us for each in (await bench.engine.schedules.fires("s", ME, 10)).fires] == [view.next_us]


async def test_the_same_definition_again_changes_nothing_and_another_one_has_another_tag(bench: Bench) -> None:
    first = await declare(bench)
    again = await declare(bench)
    assert (again.etag, again.created, again.declared_us) == (first.etag, False, first.declared_us)
    assert (await declare(bench, catch_up=5)).etag != first.etag
    with pytest.raises(PreconditionFailed):
        await bench.engine.schedules.put("s", definition(), ME, first.etag)
    with pytest.raises(PreconditionFailed):
        await bench.engine.schedules.put("s", definition(), ME, NONE)


@pytest.mark.parametrize(
    ("field", "given"),
    [
        ("cron", {"cron": "61 * * * *"}),
        ("cron", {"cron": "0 0 30 2 *"}),
        ("time_zone", {"time_zone": "Mars/Olympus"}),
        ("every", {"every": 0}),
        ("every", {"every": -5}),
        ("every", {"every": 0.5}),
        ("every", {"cron": "* * * * *", "every": 5}),
        ("time_zone", {"every": 5, "time_zone": "UTC"}),
        ("gap", {"every": 5, "gap": "skip"}),
        ("gap", {"gap": "jump"}),
        ("fold", {"fold": "second"}),
        ("at", {"at": datetime(2027, 1, 1)}),  # noqa: DTZ001
        ("overlap", {"overlap": "sometimes"}),
        ("jitter", {"jitter": -1}),
        ("jitter", {"jitter": 1e9}),
        ("catch_up", {"catch_up": float("nan")}),
        ("end", {"start": datetime(2027, 1, 2, tzinfo=UTC), "end": datetime(2027, 1, 1, tzinfo=UTC)}),
        ("task", {"task": None}),
        ("task", {"task": TaskRequest(kind=KIND, idempotency_key="k")}),
        ("task", {"task": TaskRequest(kind=KIND, run_at=datetime(2027, 1, 1, tzinfo=UTC))}),
        ("kind", {"task": TaskRequest(kind="no kind")}),
        ("tasks", {"job": JobRequest(name="j", tasks=[])}),
        ("set", {"set": " "}),
    ],
)
async def test_what_cannot_be_is_refused_with_its_field_and_stores_nothing(
    bench: Bench, field: str, given: Any
) -> None:
    with pytest.raises(Invalid) as refusal:
        await declare(bench, **given)
    assert refusal.value.field == field
    assert await bench.engine.schedules.get("s", ME) is None


async def test_a_payload_that_the_kind_does_not_take_is_refused_when_declared_and_skipped_later(bench: Bench) -> None:
    await declare(bench)
    schema = {"type": "object", "required": ["n"]}
    await bench.engine.declare([KindDefinition(kind=KIND, schema=schema)], ME)
    with pytest.raises(Invalid):
        await declare(bench, "other")
    await pass_(bench, 60)
    await fire(bench)
    (kept,) = (await bench.engine.schedules.fires("s", ME, 10)).fires
    assert (kept.outcome, kept.reason) == ("skipped", "refused")
    assert KIND in (kept.text or "")


async def test_a_job_is_made_whole_and_overlaps_while_it_is_open(bench: Bench) -> None:
    tasks = [JobTaskRequest(name="a", kind=KIND), JobTaskRequest(name="b", kind=KIND, depends_on=["a"])]
    await declare(bench, job=JobRequest(name="j", tasks=tasks))
    for _ in range(2):
        await pass_(bench, 60)
        await fire(bench)
    assert await came(bench) == [("fired", None, 1), ("skipped", "overlap", 1)]
    job = (await bench.engine.schedules.fires("s", ME, 10)).fires[1].job_id
    assert len(await bench.engine.views.job_tasks(ME.organization, job or "")) == 2


async def test_what_was_missed_within_the_window_is_made_up_for_and_the_rest_is_kept_as_missed(bench: Bench) -> None:
    await declare(bench, overlap="allow", catch_up=150)
    await pass_(bench, 600)
    await fire(bench)
    found = await came(bench)
    assert found[0][:2] == ("skipped", "missed")
    assert found[1:] == [("fired", None, 1)] * 3
    assert sum(each[2] for each in found) == 10


async def test_an_outage_is_made_up_for_once_where_nothing_may_overlap(bench: Bench) -> None:
    await declare(bench)
    await pass_(bench, 600)
    await fire(bench)
    assert await came(bench) == [("fired", None, 1), ("skipped", "overlap", 9)]


async def test_a_long_outage_is_caught_up_with_in_bounded_steps(bench: Bench) -> None:
    await declare(bench, every=1, catch_up=10, overlap="allow")
    await pass_(bench, 25_000)
    runs = 0
    while (await fire(bench)).more:
        runs += 1
    assert 2 <= runs <= 5
    assert sum(each[2] for each in await came(bench)) == 25_000


async def test_one_waits_until_the_earlier_one_has_ended(bench: Bench) -> None:
    await bench.worker()
    await declare(bench, overlap="queue_one")
    async with bench.engine.duty_runner():
        await asyncio.sleep(180.5)
        lease = await bench.lease()
        assert await came(bench) == [("fired", None, 1), ("waiting", None, 1), ("skipped", "overlap", 1)]
        await bench.settle(lease, DONE)
        await asyncio.sleep(2)
    assert await came(bench) == [("fired", None, 1), ("fired", None, 1), ("skipped", "overlap", 1)]


async def test_the_next_one_cancels_the_one_before(bench: Bench) -> None:
    await declare(bench, overlap="cancel_running")
    for _ in range(3):
        await pass_(bench, 60)
        await fire(bench)
    fires = (await bench.engine.schedules.fires("s", ME, 10)).fires
    states = [(await bench.view(each.task_id or "")).state for each in reversed(fires)]
    assert states == [TaskState.CANCELLED, TaskState.CANCELLED, TaskState.QUEUED]


async def test_jitter_comes_after_the_instant_and_the_task_knows_the_instant(bench: Bench) -> None:
    view = await declare(bench, jitter=30, overlap="allow")
    assert view.due_us is not None
    assert view.next_us is not None
    assert 0 <= view.due_us - view.next_us <= 30 * SECOND
    async with bench.engine.duty_runner():
        await asyncio.sleep(10 * 60)
    fires = (await bench.engine.schedules.fires("s", ME, 100)).fires
    late = [each.at_us - each.first_us for each in fires]
    assert len(fires) in (9, 10)
    assert max(late) < 31 * SECOND
    assert len(set(late)) > 5


async def test_the_instants_of_a_pause_are_skipped_and_it_goes_on_with_the_next(bench: Bench) -> None:
    await declare(bench)
    paused = await bench.engine.schedules.pause("s", ME)
    assert (paused.paused, paused.paused_by, paused.due_us) == (True, "me", None)
    await pass_(bench, 300)
    assert await fire(bench) == Swept(0, None, False)
    assert ((await stands(bench)).next_us or 0) > await bench.store.ledger.now_us()
    resumed = await bench.engine.schedules.resume("s", ME)
    assert not resumed.paused
    assert await came(bench) == [("skipped", "paused", 5)]
    await pass_(bench, 60)
    await fire(bench)
    assert await came(bench) == [("skipped", "paused", 5), ("fired", None, 1)]


async def test_what_waits_survives_a_pause(bench: Bench) -> None:
    await bench.worker()
    await declare(bench, overlap="queue_one")
    await pass_(bench, 120)
    await fire(bench)
    await bench.engine.schedules.pause("s", ME)
    await bench.settle(await bench.lease(), DONE)
    await pass_(bench, 30)
    await fire(bench)
    await bench.engine.schedules.resume("s", ME)
    await pass_(bench, 1)
    await fire(bench)
    assert await came(bench) == [("fired", None, 1), ("fired", None, 1)]


async def test_a_change_of_time_begins_with_the_next_instant_and_a_change_of_work_goes_on(bench: Bench) -> None:
    first = await declare(bench)
    await pass_(bench, 150)
    same = await declare(bench, task=TaskRequest(kind=KIND, priority=9))
    assert same.next_us == first.next_us
    other = await declare(bench, cron="30 * * * *")
    assert other.next_us is not None
    assert other.next_us > await bench.store.ledger.now_us()
    assert await came(bench) == [("skipped", "changed", 2)]


async def test_a_disabled_schedule_has_no_instants_and_enabled_again_it_has_the_next_ones(bench: Bench) -> None:
    await declare(bench, enabled=False)
    assert (await stands(bench)).next_us is None
    await pass_(bench, 300)
    await fire(bench)
    assert await came(bench) == []
    view = await declare(bench)
    assert (view.next_us or 0) > await bench.store.ledger.now_us()


async def test_intervals_keep_their_beat_when_something_else_changes(bench: Bench) -> None:
    first = await declare(bench, every=90)
    await pass_(bench, 10)
    assert (await declare(bench, every=90, jitter=1)).next_us == first.next_us
    moved = await declare(bench, every=60)
    assert moved.next_us == await bench.store.ledger.now_us() + MINUTE


async def test_once_is_once_and_then_nothing_is_next(bench: Bench) -> None:
    now = await bench.store.ledger.now_us()
    await declare(bench, at=EPOCH + timedelta(microseconds=now + 5 * SECOND))
    await pass_(bench, 5)
    assert (await fire(bench)).next_us is None
    view = await stands(bench)
    assert (view.next_us, view.last_outcome) == (None, "fired")


async def test_two_schedulers_never_make_two_of_one_instant(bench: Bench) -> None:
    await declare(bench, every=1, overlap="allow")
    other = bench.engine_with()
    async with bench.engine.duty_runner(), other.duty_runner():
        await asyncio.sleep(60.5)
    fires = (await bench.engine.schedules.fires("s", ME, 1000)).fires
    assert len({each.first_us for each in fires}) == len(fires) == 60
    await other.close()
