"""What a worker gets: in which order, from which lines, never more than it may hold, never twice."""

import json
from typing import Any

import pytest

from conformance.making import DONE, FAILED, HOUR, KIND, ORGANIZATION, QUEUE, World, retry_in, us
from perdure.domain.settlement import Settlement
from perdure.domain.states import AttemptState, Reason, TaskState
from perdure.domain.task import Body
from perdure.store.ledger import ClaimRequest, WorkerOrder


async def claimed_ids(world: World, count: int, worker: str = "w") -> list[str]:
    return [lease.hold.task_id for lease in await world.claim(count, worker)]


async def pause(world: World, type: Any, name: str, paused: bool = True) -> None:
    await world.definitions.put(ORGANIZATION, type, name, json.dumps({"paused": paused}), "bob")


# Order


async def test_the_more_urgent_goes_first_and_then_the_older(world: World) -> None:
    low = [await world.submit(priority=0) for _ in range(2)]
    high = [await world.submit(priority=9) for _ in range(2)]
    middle = [await world.submit(priority=4) for _ in range(2)]
    assert await claimed_ids(world, 10) == [*high, *middle, *low]


async def test_one_at_a_time_gives_the_same_order(world: World) -> None:
    tasks = [world.task(priority=priority) for priority in (3, 9, 0, 3, 9, 0, 4)]
    await world.submit_all(tasks)
    ordered = [task.id for task in sorted(tasks, key=lambda each: -each.terms.priority)]
    assert [(await world.claim_one()).hold.task_id for _ in tasks] == ordered


async def test_age_goes_over_kinds_and_queues_of_one_priority(world: World) -> None:
    await world.worker("both", kinds=(KIND, "other"), queues=(QUEUE, "side"))
    ids = []
    for kind, queue in ((KIND, QUEUE), ("other", QUEUE), (KIND, "side"), ("other", "side"), (KIND, QUEUE)):
        ids.append(await world.submit(kind=kind, queue=queue))
    assert await claimed_ids(world, 10, "both") == ids


async def test_what_was_handed_back_or_lost_goes_before_what_was_never_leased(world: World) -> None:
    returned = await world.lease()
    lost = await world.lease()
    fresh = [await world.submit() for _ in range(2)]
    world.advance(59)
    assert await world.renew(returned)
    world.advance(1)
    await world.sweep()
    await world.settle(returned, Settlement.handed_back())
    ids = await claimed_ids(world, 10)
    assert set(ids[:2]) == {returned.hold.task_id, lost.hold.task_id}
    assert ids[2:] == fresh


async def test_a_retry_takes_its_place_behind_what_waits(world: World) -> None:
    failed = await world.lease()
    await world.settle(failed, retry_in(10))
    waiting = await world.submit()
    world.advance(10)
    await world.ledger.promote(10)
    assert await claimed_ids(world, 10) == [waiting, failed.hold.task_id]


# Who may have what


@pytest.mark.parametrize(
    ("task", "worker"),
    [
        ({"kind": "other"}, {}),
        ({"queue": "other"}, {}),
        ({"organization": "other"}, {"organizations": (ORGANIZATION,)}),
        ({"capabilities": ("gpu",)}, {}),
        ({"capabilities": ("gpu", "ssd")}, {"capabilities": ("gpu",)}),
    ],
)
async def test_a_worker_gets_nothing_that_it_lacks_something_for(
    world: World, task: dict[str, Any], worker: dict[str, Any]
) -> None:
    await world.worker("poor", **worker)
    await world.submit(**task)
    allowed = await world.submit()
    assert await claimed_ids(world, 10, "poor") == [allowed]


async def test_a_worker_with_more_capabilities_than_asked_for_gets_the_task(world: World) -> None:
    await world.worker("rich", capabilities=("cpu", "gpu", "ssd"))
    wanted = [await world.submit(capabilities=each) for each in ((), ("gpu",), ("cpu", "ssd"))]
    assert await claimed_ids(world, 10, "rich") == wanted


async def test_a_worker_without_a_list_of_organizations_serves_all(world: World) -> None:
    here = await world.submit()
    there = await world.submit(organization="there")
    leases = await world.claim(10)
    assert [(each.hold.organization, each.hold.task_id) for each in leases] == [
        (ORGANIZATION, here),
        ("there", there),
    ]


@pytest.mark.parametrize(("type", "name"), [("queue", QUEUE), ("organization", ORGANIZATION)])
async def test_what_is_paused_gives_nothing_until_it_is_resumed(world: World, type: str, name: str) -> None:
    task_id = await world.submit()
    await pause(world, type, name)
    with world.unchanged():
        assert await world.claim(10) == []
    await pause(world, type, name, False)
    assert await claimed_ids(world, 10) == [task_id]


async def test_pausing_one_queue_leaves_the_others_alone(world: World) -> None:
    await world.worker("both", queues=(QUEUE, "side"))
    await world.submit()
    side = await world.submit(queue="side")
    await pause(world, "queue", QUEUE)
    assert await claimed_ids(world, 10, "both") == [side]


@pytest.mark.parametrize("order", [WorkerOrder.PAUSE, WorkerOrder.DRAIN, WorkerOrder.REVOKE])
async def test_a_worker_that_is_to_do_otherwise_gets_nothing(world: World, order: WorkerOrder) -> None:
    await world.submit()
    await world.ledger.order(ORGANIZATION, "w", order, "bob")
    with world.unchanged():
        assert await world.claim(10) == []
    assert await world.ledger.heartbeat("w", 10) is order
    await world.ledger.order(ORGANIZATION, "w", WorkerOrder.WORK, "bob")
    assert len(await world.claim(10)) == 1


async def test_an_order_outlives_a_new_registration(world: World) -> None:
    await world.ledger.order(ORGANIZATION, "w", WorkerOrder.PAUSE, "bob")
    await world.worker("w")
    await world.submit()
    assert await world.claim(10) == []


async def test_an_unknown_worker_gets_nothing_and_is_told_to_stop(world: World) -> None:
    await world.submit()
    with world.unchanged():
        assert await world.claim(10, "nobody") == []
        assert await world.ledger.heartbeat("nobody", 10) is WorkerOrder.REVOKE


# How much


async def test_no_more_is_claimed_than_attempts_were_chosen_for(world: World) -> None:
    await world.submit_all([world.task() for _ in range(5)])
    assert [len(await world.claim(count)) for count in (2, 0, 1, 10)] == [2, 0, 1, 2]


async def test_capacity_is_never_exceeded(world: World) -> None:
    await world.worker("small", capacity=3)
    await world.submit_all([world.task() for _ in range(10)])
    first = await world.claim(2, "small")
    second = await world.claim(10, "small")
    assert (len(first), len(second)) == (2, 1)
    assert await world.claim(10, "small") == []
    await world.finish(first[0])
    assert len(await world.claim(10, "small")) == 1


async def test_a_cancelled_task_still_takes_its_slot(world: World) -> None:
    await world.worker("small", capacity=1)
    await world.submit()
    await world.submit()
    (lease,) = await world.claim(1, "small")
    await world.cancel(lease.hold.task_id)
    assert await world.claim(1, "small") == []
    await world.settle(lease, Settlement.acknowledged())
    assert len(await world.claim(1, "small")) == 1


async def test_no_two_claims_get_the_same_task(world: World) -> None:
    await world.worker("v")
    await world.submit_all([world.task() for _ in range(40)])
    got = [each for n in range(20) for each in await claimed_ids(world, 3, "wv"[n % 2])]
    assert len(got) == len(set(got)) == 40


async def test_a_repeated_claim_answers_the_same_leases(world: World) -> None:
    await world.submit_all([world.task() for _ in range(3)])
    request = ClaimRequest("w", world.leases(3))
    first = await world.ledger.claim(request)
    with world.unchanged():
        again = await world.ledger.claim(request)
    assert again == first
    assert [each.hold.attempt_id for each in first] == [attempt for attempt, _ in request.leases]


async def test_a_repeated_claim_that_had_got_less_may_not_get_more_than_it_asked_for(world: World) -> None:
    await world.submit()
    request = ClaimRequest("w", world.leases(2))
    first = await world.ledger.claim(request)
    await world.submit_all([world.task() for _ in range(5)])
    again = await world.ledger.claim(request)
    assert again[0].hold == first[0].hold
    assert len(again) <= 2


async def test_a_repeated_claim_does_not_return_what_has_ended_since(world: World) -> None:
    await world.submit()
    request = ClaimRequest("w", world.leases(1))
    (lease,) = await world.ledger.claim(request)
    await world.finish(lease)
    with world.unchanged():
        assert await world.ledger.claim(request) == []


# What a lease tells


async def test_a_lease_tells_all_that_the_handler_needs(world: World) -> None:
    options = json.dumps({"labels": {"a": "b"}})
    task_id = await world.submit(
        priority=7,
        payload='{"month":"2026-11"}',
        ttl=100,
        lease=20,
        timeout=30,
        execution_limit=500,
        max_attempts=5,
        retry='{"base":1}',
        options=options,
        principal="alice",
        initiator="root",
    )
    world.advance(10)
    lease = await world.claim_one()
    assert lease.hold.organization == ORGANIZATION
    assert lease.hold.task_id == task_id
    assert (lease.kind, lease.queue, lease.priority) == (KIND, QUEUE, 7)
    assert lease.payload == Body(b'{"month":"2026-11"}')
    assert (lease.attempt, lease.generation, lease.max_attempts) == (1, 1, 5)
    assert (lease.lease_us, lease.timeout_us, lease.deadline_us) == (us(20), us(30), us(500))
    assert lease.start_within_us == us(90)
    assert (lease.job_id, lease.name, lease.parents, lease.checkpoint) == (None, None, 0, None)
    assert (lease.retry, lease.initiator) == ('{"base":1}', "root")
    assert lease.options is not None
    assert json.loads(lease.options) == json.loads(options)


async def test_a_payload_of_another_encoding_comes_back_as_its_bytes(world: World) -> None:
    lease = await world.lease(payload="AAH/", encoding="msgpack")
    assert lease.payload == Body(b"\x00\x01\xff", "msgpack")


async def test_a_payload_of_odd_characters_comes_back_as_it_was(world: World) -> None:
    text = json.dumps({"a": "\u0000 \u2028 \U0001f600 'quoted' \"twice\" \\"}, ensure_ascii=False)
    lease = await world.lease(payload=text)
    assert lease.payload.data.decode() == text


async def test_a_lease_of_a_job_names_job_task_and_parents(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": ["a", "b"]})
    await world.run(family, "a", "b")
    lease = await world.claim_one()
    assert (lease.job_id, lease.name, lease.parents) == (family.id, "c", 2)


# Fences


async def test_a_fence_is_at_least_the_stores_time(world: World) -> None:
    lease = await world.lease()
    assert lease.fence >= await world.now_us()


async def test_fences_grow_though_the_clock_stands_still(world: World) -> None:
    task_id = await world.submit()
    fences = []
    for _ in range(5):
        lease = await world.claim_one()
        fences.append(lease.fence)
        await world.settle(lease, Settlement.handed_back())
    assert fences == sorted(set(fences))
    attempts = await world.views.attempts(ORGANIZATION, task_id)
    assert [each.fence for each in attempts] == fences


async def test_a_fence_goes_on_through_a_redrive(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease, settlement=FAILED)
    assert await world.redrive(lease.hold.task_id) is TaskState.QUEUED
    again = await world.claim_one()
    assert again.fence > lease.fence
    assert again.generation == 2


# Time gates at the claim


async def test_a_claim_promotes_what_is_due_so_that_no_duty_is_needed(world: World) -> None:
    delayed = await world.submit(delay=30)
    retried = await world.lease()
    await world.settle(retried, retry_in(30))
    with world.unchanged():
        assert await world.claim(10) == []
    world.advance(30)
    assert set(await claimed_ids(world, 10)) == {delayed, retried.hold.task_id}


async def test_a_task_is_claimable_at_its_very_microsecond(world: World) -> None:
    task_id = await world.submit(run_at_us=await world.now_us() + 10)
    world.clock.advance(9)
    assert await world.claim(1) == []
    world.clock.advance(1)
    assert await claimed_ids(world, 1) == [task_id]


async def test_a_claim_expires_what_came_too_late(world: World) -> None:
    late = await world.submit(ttl=30)
    fresh = await world.submit()
    world.advance(30)
    assert await claimed_ids(world, 10) == [fresh]
    task = await world.look(late)
    assert (task.state, task.reason) == (TaskState.EXPIRED, Reason.TTL)
    assert await world.views.attempts(ORGANIZATION, late) == []


async def test_a_task_can_be_claimed_in_the_last_microsecond_of_its_ttl(world: World) -> None:
    task_id = await world.submit(ttl=30)
    world.clock.advance(us(30) - 1)
    lease = await world.claim_one()
    assert lease.hold.task_id == task_id
    assert lease.start_within_us == 1


async def test_a_claim_never_gives_what_is_past_its_deadline(world: World) -> None:
    lease = await world.lease(execution_limit=50)
    await world.settle(lease, Settlement.handed_back())
    world.advance(50)
    assert await world.claim(10) == []
    await world.ledger.expire(10)
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.reason) == (TaskState.DEAD_LETTERED, Reason.DEADLINE)


async def test_the_first_claim_sets_the_deadline_and_later_ones_keep_it(world: World) -> None:
    await world.submit(execution_limit=1000)
    world.advance(500)
    first = await world.claim_one()
    assert first.deadline_us == us(1000)
    await world.settle(first, Settlement.handed_back())
    world.advance(100)
    second = await world.claim_one()
    assert second.deadline_us == us(900)
    await world.settle(second, retry_in(100))
    world.advance(100)
    third = await world.claim_one()
    assert third.deadline_us == us(800)


async def test_many_due_tasks_are_promoted_and_claimed_without_a_duty(world: World) -> None:
    await world.submit_all([world.task(delay=5) for _ in range(300)])
    world.advance(5)
    got: list[str] = []
    for _ in range(10):
        got += await claimed_ids(world, 100)
    assert len(set(got)) == 300


async def test_a_task_due_in_thirty_days_costs_nothing_and_comes(world: World) -> None:
    task_id = await world.submit(delay=30 * 24 * HOUR)
    assert await world.claim(1) == []
    assert (await world.ledger.promote(10)).moved == 0
    world.advance(30 * 24 * HOUR)
    assert await claimed_ids(world, 1) == [task_id]


async def test_an_attempt_shows_when_it_was_queued_leased_started_and_ended(world: World) -> None:
    queued = await world.now_us()
    task_id = await world.submit()
    world.advance(1)
    lease = await world.claim_one()
    world.advance(1)
    await world.start(lease)
    world.advance(1)
    await world.finish(lease, settlement=DONE)
    (attempt,) = await world.views.attempts(ORGANIZATION, task_id)
    assert (attempt.queued_us, attempt.leased_us, attempt.started_us, attempt.ended_us) == (
        queued,
        queued + us(1),
        queued + us(2),
        queued + us(3),
    )
    assert (attempt.state, attempt.worker, attempt.build) == (AttemptState.SUCCEEDED, "w", "build-1")
