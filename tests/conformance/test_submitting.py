"""Submitting: idempotency keys whoever races, depth limits, TTLs; a refusal stores nothing."""

import asyncio
import json
from typing import Any

import pytest

from conformance.making import DONE, FAILED, HOUR, ORGANIZATION, World, retry_in, us
from perdure.domain import limits
from perdure.domain.retention import Retention
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState
from perdure.domain.task import Task
from perdure.errors import IdempotencyConflict, Invalid, NotFound, Overloaded
from perdure.store.ledger import JobSubmitted, Submitted


def keyed(world: World, request_hash: str = "h", **given: Any) -> Task:
    return world.task(**{"idempotency_key": "k", "request_hash": request_hash, **given})


async def test_a_task_that_is_due_is_queued_and_one_due_later_is_pending(world: World) -> None:
    now = await world.now_us()
    tasks = [
        world.task(),
        world.task(delay=0),
        world.task(delay=10),
        world.task(run_at_us=now),
        world.task(run_at_us=now - us(HOUR)),
        world.task(run_at_us=now + 1),
    ]
    answers = await world.submit_all(tasks)
    assert [each.state for each in answers if isinstance(each, Submitted)] == [
        TaskState.QUEUED,
        TaskState.QUEUED,
        TaskState.PENDING,
        TaskState.QUEUED,
        TaskState.QUEUED,
        TaskState.PENDING,
    ]
    assert [each.id for each in answers if isinstance(each, Submitted)] == [each.id for each in tasks]
    assert (await world.look(tasks[2].id)).due_us == now + us(10)


async def test_what_was_submitted_can_be_seen_whole(world: World) -> None:
    options = json.dumps({"labels": {"team": "a"}, "metadata": {"x": [1]}})
    task_id = await world.submit(priority=8, payload='{"é":"ü"}', principal="p", initiator="i", options=options)
    task = await world.look(task_id)
    assert (task.kind, task.queue, task.priority, task.state) == ("work", "default", 8, TaskState.QUEUED)
    assert (task.principal, task.initiator, task.generation, task.attempt) == ("p", "i", 1, 1)
    assert (task.labels, task.metadata) == ({"team": "a"}, {"x": [1]})
    assert task.payload is not None
    assert task.payload.data.decode() == '{"é":"ü"}'
    assert task.created_us == await world.now_us()


async def test_a_foreign_organization_sees_nothing(world: World) -> None:
    task_id = await world.submit()
    family = await world.submit_job({"a": []})
    assert await world.views.task("other", task_id) is None
    assert await world.views.job("other", family.id) is None
    for read in (world.views.attempts, world.views.events, world.views.parts):
        with pytest.raises(NotFound):
            await read("other", task_id)
    for read_job in (world.views.job_tasks, world.views.job_events):
        with pytest.raises(NotFound):
            await read_job("other", family.id)
    assert await world.views.ended("other", [task_id]) == []
    overview = await world.views.overview("other")
    assert (overview.counts, overview.tasks) in (((), 0), ((), 1), ((), 2))


@pytest.mark.parametrize("ttl_us", [0, -1])
async def test_a_ttl_that_has_passed_on_arrival_is_refused(world: World, ttl_us: int) -> None:
    task = world.task(ttl_us=ttl_us)
    with world.unchanged():
        (answer,) = await world.submit_all([task])
    assert isinstance(answer, Invalid)


# Idempotency


async def test_the_same_key_and_request_answers_the_first_task(world: World) -> None:
    first = keyed(world)
    await world.submit_all([first])
    with world.unchanged():
        (again,) = await world.submit_all([keyed(world)])
    assert again == Submitted(first.id, TaskState.QUEUED, True)


async def test_the_same_key_with_another_request_is_a_conflict(world: World) -> None:
    first = keyed(world)
    await world.submit_all([first])
    with world.unchanged():
        (again,) = await world.submit_all([keyed(world, "other")])
    assert isinstance(again, IdempotencyConflict)
    assert again.fields["task_id"] == first.id


async def test_items_of_one_call_race_like_calls(world: World) -> None:
    tasks = [keyed(world, "h" if n % 3 else "other") for n in range(1, 31)]
    answers = await world.submit_all(tasks)
    assert answers[0] == Submitted(tasks[0].id, TaskState.QUEUED, False)
    for task, answer in list(zip(tasks, answers, strict=True))[1:]:
        if task.rare.request_hash == "h":
            assert answer == Submitted(tasks[0].id, TaskState.QUEUED, True)
        else:
            assert isinstance(answer, IdempotencyConflict)
    assert len(await world.claim(50)) == 1


async def test_fifty_calls_at_once_make_one_task(world: World) -> None:
    answers = await asyncio.gather(*(world.submit_all([keyed(world)]) for _ in range(50)))
    made = [each for (each,) in answers if isinstance(each, Submitted)]
    assert len(made) == 50
    assert len({each.id for each in made}) == 1
    assert sorted(each.replayed for each in made) == [False] + [True] * 49


async def test_many_keys_many_times_in_one_call(world: World) -> None:
    tasks = [keyed(world, idempotency_key=f"k{n % 10}") for n in range(100)]
    answers = await world.submit_all(tasks)
    for n, answer in enumerate(answers):
        assert answer == Submitted(tasks[n % 10].id, TaskState.QUEUED, n >= 10)


async def test_a_replay_within_one_call_tells_the_state_that_the_task_is_in(world: World) -> None:
    answers = await world.submit_all([keyed(world, delay=60) for _ in range(2)])
    assert [(each.state, each.replayed) for each in answers if isinstance(each, Submitted)] == [
        (TaskState.PENDING, False),
        (TaskState.PENDING, True),
    ]


async def test_a_key_belongs_to_its_organization_and_submitter(world: World) -> None:
    tasks = [keyed(world), keyed(world, principal="bob"), keyed(world, organization="other")]
    answers = await world.submit_all(tasks)
    assert [each.replayed for each in answers if isinstance(each, Submitted)] == [False] * 3


async def test_keys_of_tasks_and_jobs_do_not_meet(world: World) -> None:
    await world.submit_all([keyed(world)])
    (answer,) = await world.ledger.submit_jobs([world.job({"a": []}, idempotency_key="k", request_hash="x")])
    assert isinstance(answer, JobSubmitted)


async def test_a_key_stays_bound_to_its_task_whatever_its_end(world: World) -> None:
    task = keyed(world)
    await world.submit_all([task])
    await world.finish(await world.claim_one())
    (again,) = await world.submit_all([keyed(world)])
    assert again == Submitted(task.id, TaskState.SUCCEEDED, True)


async def test_a_key_lives_for_its_stated_time(world: World) -> None:
    task = keyed(world, delay=100 * 24 * HOUR)
    await world.submit_all([task])
    world.clock.advance(limits.IDEMPOTENCY_KEY_LIFE_US - 1)
    (again,) = await world.submit_all([keyed(world)])
    assert isinstance(again, Submitted)
    assert again.replayed
    world.clock.advance(1)
    (anew,) = await world.submit_all([keyed(world)])
    assert isinstance(anew, Submitted)
    assert not anew.replayed
    assert anew.id != task.id


async def test_a_key_of_odd_characters_is_a_key(world: World) -> None:
    key = "ключ '\" \\u0000 %_* 🙂"
    first = keyed(world, idempotency_key=key)
    await world.submit_all([first])
    (again,) = await world.submit_all([keyed(world, idempotency_key=key)])
    assert isinstance(again, Submitted)
    assert (again.id, again.replayed) == (first.id, True)


async def test_a_refused_task_does_not_take_its_key(world: World) -> None:
    await world.submit_all([keyed(world, ttl_us=0)])
    (answer,) = await world.submit_all([keyed(world)])
    assert isinstance(answer, Submitted)
    assert not answer.replayed


async def test_a_jobs_key_answers_the_first_job(world: World) -> None:
    first = world.job({"a": [], "b": ["a"]}, idempotency_key="k", request_hash="h")
    again = world.job({"a": [], "b": ["a"]}, idempotency_key="k", request_hash="h")
    other = world.job({"a": []}, idempotency_key="k", request_hash="other")
    (made,) = await world.ledger.submit_jobs([first])
    with world.unchanged():
        replayed, conflict = await world.ledger.submit_jobs([again, other])
    assert isinstance(made, JobSubmitted)
    assert not made.replayed
    assert replayed == made._replace(replayed=True)
    assert isinstance(conflict, IdempotencyConflict)
    assert conflict.fields["job_id"] == first.id


async def test_jobs_of_one_call_race_for_their_key_like_calls(world: World) -> None:
    jobs = [world.job({"a": []}, idempotency_key="k", request_hash="h") for _ in range(5)]
    answers = await world.ledger.submit_jobs(jobs)
    assert {each.id for each in answers if isinstance(each, JobSubmitted)} == {jobs[0].id}
    assert len(await world.claim(10)) == 1


@pytest.mark.parametrize("settlement", [DONE, FAILED], ids=lambda each: str(each.state))
async def test_a_replay_of_what_retention_has_removed_says_no_state(world: World, settlement: Settlement) -> None:
    task = keyed(world)
    await world.submit_all([task])
    await world.finish(await world.claim_one(), settlement=settlement)
    job = world.job({"a": []}, idempotency_key="k", request_hash="h")
    await world.ledger.submit_jobs([job])
    await world.finish(await world.claim_one(), settlement=settlement)
    await world.submit_job({"stays": []})
    world.advance(HOUR + 1)
    await world.ledger.retain(Retention(us(HOUR)), 100)
    with world.unchanged():
        assert await world.submit_all([keyed(world)]) == [Submitted(task.id, None, True)]
        again = world.job({"a": []}, idempotency_key="k", request_hash="h")
        assert await world.ledger.submit_jobs([again]) == [JobSubmitted(job.id, {}, True)]


# Depth


async def limit(world: World, type: Any, name: str, depth: int, organization: str = ORGANIZATION) -> None:
    await world.definitions.put(organization, type, name, json.dumps({"depth": depth}), "bob")


@pytest.mark.parametrize(("type", "name"), [("queue", "default"), ("organization", ORGANIZATION)])
async def test_a_task_over_the_depth_is_refused_and_stores_nothing(world: World, type: str, name: str) -> None:
    await limit(world, type, name, 3)
    answers = await world.submit_all([world.task() for _ in range(3)])
    assert all(isinstance(each, Submitted) for each in answers)
    with world.unchanged():
        (refused,) = await world.submit_all([world.task()])
    assert isinstance(refused, Overloaded)
    assert refused.fields["retry_after"] > 0


async def test_what_is_delayed_or_retrying_counts_and_what_is_held_or_ended_does_not(world: World) -> None:
    await limit(world, "queue", "default", 3)
    await world.submit(delay=HOUR)
    retried = await world.lease()
    await world.settle(retried, retry_in(HOUR))
    await world.submit()
    assert isinstance((await world.submit_all([world.task()]))[0], Overloaded)
    lease = await world.claim_one()
    assert isinstance((await world.submit_all([world.task()]))[0], Submitted)
    assert isinstance((await world.submit_all([world.task()]))[0], Overloaded)
    await world.finish(lease, settlement=DONE)
    assert isinstance((await world.submit_all([world.task()]))[0], Overloaded)


async def test_a_call_larger_than_the_room_left_overshoots_by_no_more_than_itself(world: World) -> None:
    await limit(world, "queue", "default", 5)
    answers = await world.submit_all([world.task() for _ in range(20)])
    taken = [each for each in answers if isinstance(each, Submitted)]
    assert 5 <= len(taken) <= 20
    assert len(await world.claim(50)) == len(taken)
    await world.submit_all([world.task() for _ in range(5)])
    with world.unchanged():
        assert isinstance((await world.submit_all([world.task()]))[0], Overloaded)


async def test_one_full_queue_does_not_refuse_another(world: World) -> None:
    await limit(world, "queue", "default", 0)
    answers = await world.submit_all([world.task(), world.task(queue="side"), world.task(organization="other")])
    assert [isinstance(each, Overloaded) for each in answers] == [True, False, False]


async def test_a_replay_is_answered_though_the_queue_is_full(world: World) -> None:
    await world.submit_all([keyed(world)])
    await limit(world, "queue", "default", 0)
    (again,) = await world.submit_all([keyed(world)])
    assert isinstance(again, Submitted)
    assert again.replayed


async def test_a_job_over_the_depth_is_refused_whole(world: World) -> None:
    await limit(world, "queue", "default", 2)
    with world.unchanged():
        (answer,) = await world.ledger.submit_jobs([world.job({"a": [], "b": ["a"], "c": ["b"]})])
    assert isinstance(answer, Overloaded)
    (small,) = await world.ledger.submit_jobs([world.job({"a": [], "b": ["a"]})])
    assert isinstance(small, JobSubmitted)
