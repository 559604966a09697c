"""Histories: derived, ordered, and append-only in what they show."""

from backends.views.watching import Watch
from conformance.making import BOOM, DONE, FAILED, FIXED, ORGANIZATION, World, retry_in
from perdure.domain.attempt import Renewal
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState


async def test_a_plain_life_even_within_one_instant(world: World) -> None:
    task_id = await world.submit()
    watch = Watch(world, task_id)
    assert await watch.types() == ["submitted", "queued"]
    lease = await world.claim_one()
    assert await watch.types() == ["submitted", "queued", "leased"]
    await world.start(lease)
    assert await watch.types() == ["submitted", "queued", "leased", "started"]
    await world.finish(lease)
    events = await watch.look()
    assert [event.type for event in events] == ["submitted", "queued", "leased", "started", "succeeded", "ended"]
    assert [event.actor for event in events] == ["alice", "system", "w", "w", "w", "w"]
    assert {event.initiator for event in events} == {"alice"}
    assert events[4].data == {
        "attempt": lease.hold.attempt_id,
        "fence": lease.fence,
        "number": 1,
        "worker": "w",
        "reason": "ok",
        "state": "succeeded",
    }
    assert events[5].data == {"state": "succeeded", "reason": "ok"}


async def test_a_loss_and_the_attempt_after_it(world: World) -> None:
    lease = await world.lease()
    watch = Watch(world, lease.hold.task_id)
    await watch.look()
    world.advance(61)
    await world.sweep()
    await watch.look()
    second = await world.claim_one()
    await world.finish(second)
    events = await watch.look()
    assert [event.type for event in events] == [
        "submitted",
        "queued",
        "leased",
        "lost",
        "queued",
        "leased",
        "succeeded",
        "ended",
    ]
    assert (events[3].actor, events[3].data["reason"], events[3].data["state"]) == ("system", "worker_lost", "queued")
    assert events[3].data["worker"] == "w"


async def test_a_retry_says_when_it_is_due(world: World) -> None:
    lease = await world.lease()
    watch = Watch(world, lease.hold.task_id)
    await world.finish(lease, settlement=retry_in(10))
    failed = (await watch.look())[-1]
    assert (failed.type, failed.data["state"], failed.data["reason"]) == ("failed", "retrying", "error")
    assert failed.data["due_us"] == await world.now_us() + 10_000_000
    world.advance(10)
    await world.ledger.promote(10)
    assert (await watch.types())[-1] == "queued"


async def test_a_snooze_and_a_hand_back(world: World) -> None:
    lease = await world.lease()
    watch = Watch(world, lease.hold.task_id)
    await world.finish(lease, settlement=Settlement.handed_back())
    await watch.look()
    await world.finish(await world.claim_one(), settlement=Settlement.snoozed(1_000_000))
    assert await watch.types() == ["submitted", "queued", "leased", "released", "queued", "leased", "snoozed"]


async def test_the_ladder_of_a_cancel_that_its_holder_heeds(world: World) -> None:
    lease = await world.lease()
    watch = Watch(world, lease.hold.task_id)
    await world.start(lease)
    world.advance(1)
    await world.cancel(lease.hold.task_id)
    assert (await watch.types())[-1] == "cancel_requested"
    world.advance(1)
    await world.ledger.renew([Renewal(lease.hold, True, delivered=True)])
    assert (await watch.types())[-1] == "cancel_delivered"
    world.advance(1)
    await world.finish(lease, settlement=Settlement.acknowledged())
    events = await watch.look()
    assert [event.type for event in events[4:]] == [
        "cancel_requested",
        "cancel_delivered",
        "cancel_stopped",
        "cancelled",
        "ended",
    ]
    assert [event.actor for event in events[4:]] == ["bob", "w", "w", "w", "w"]
    assert events[4].data == {"reason": "user", "text": "not needed"}
    assert events[6].data["by"] == "holder"


async def test_the_ladder_of_a_cancel_whose_holder_is_gone(world: World) -> None:
    lease = await world.lease()
    watch = Watch(world, lease.hold.task_id)
    await world.cancel(lease.hold.task_id)
    await watch.look()
    world.advance(31)
    await world.sweep()
    events = await watch.look()
    assert [event.type for event in events[3:]] == ["cancel_requested", "cancel_stopped", "cancelled", "ended"]
    assert (events[4].actor, events[4].data["by"]) == ("system", "lease_or_deadline")


async def test_a_cancel_of_what_waits(world: World) -> None:
    task_id = await world.submit()
    watch = Watch(world, task_id)
    await watch.look()
    await world.cancel(task_id)
    events = await watch.look()
    assert [event.type for event in events] == ["submitted", "queued", "cancel_requested", "ended"]
    assert [event.actor for event in events] == ["alice", "system", "bob", "bob"]


async def test_a_queued_task_that_expires_stays_queued_in_its_history(world: World) -> None:
    task_id = await world.submit(ttl=5)
    watch = Watch(world, task_id)
    await watch.look()
    world.advance(6)
    await world.ledger.expire(10)
    events = await watch.look()
    assert [event.type for event in events] == ["submitted", "queued", "ended"]
    assert (events[-1].actor, events[-1].data) == ("system", {"state": "expired", "reason": "ttl"})


async def test_a_postponed_task_was_queued_before(world: World) -> None:
    task_id = await world.submit()
    watch = Watch(world, task_id)
    await watch.look()
    world.advance(1)
    await world.ledger.postpone(ORGANIZATION, task_id, await world.now_us() + 5_000_000)
    assert await watch.types() == ["submitted", "queued", "postponed"]
    world.advance(5)
    await world.ledger.promote(10)
    assert await watch.types() == ["submitted", "queued", "postponed", "queued"]


async def test_a_redrive_keeps_the_earlier_life(world: World) -> None:
    lease = await world.lease()
    watch = Watch(world, lease.hold.task_id)
    await world.finish(lease, settlement=FAILED)
    await watch.look()
    await world.redrive(lease.hold.task_id)
    await watch.look()
    await world.finish(await world.claim_one())
    events = await watch.look()
    assert [(event.type, event.generation) for event in events] == [
        ("submitted", 1),
        ("queued", 1),
        ("leased", 1),
        ("failed", 1),
        ("ended", 1),
        ("redriven", 2),
        ("queued", 2),
        ("leased", 2),
        ("succeeded", 2),
        ("ended", 2),
    ]
    assert events[5].actor == "bob"


async def test_a_redrive_keeps_an_end_that_no_attempt_made(world: World) -> None:
    lease = await world.lease(execution_limit=30)
    watch = Watch(world, lease.hold.task_id)
    await world.finish(lease, settlement=Settlement.handed_back())
    world.advance(31)
    await world.ledger.expire(10)
    assert await world.state(lease.hold.task_id) == TaskState.DEAD_LETTERED
    before = await watch.types()
    assert before == ["submitted", "queued", "leased", "released", "queued", "ended"]
    await world.redrive(lease.hold.task_id)
    assert await watch.types() == [*before, "redriven", "queued"]


async def test_a_discard_stands_behind_the_end(world: World) -> None:
    lease = await world.lease()
    watch = Watch(world, lease.hold.task_id)
    await world.finish(lease, settlement=FAILED)
    await watch.look()
    await world.ledger.discard(ORGANIZATION, [lease.hold.task_id], "bob")
    assert (await watch.types())[-2:] == ["ended", "discarded"]
    assert (await world.look(lease.hold.task_id)).discarded


async def test_a_late_result_is_told(world: World) -> None:
    lease = await world.lease()
    watch = Watch(world, lease.hold.task_id)
    world.advance(61)
    await world.sweep()
    await watch.look()
    await world.settle(lease, DONE)
    late = next(event for event in await watch.look() if event.type == "late_result")
    assert late.data["attempt"] == lease.hold.attempt_id


async def test_phases_stand_within_their_attempt(world: World) -> None:
    lease = await world.lease()
    watch = Watch(world, lease.hold.task_id)
    await world.report(lease, phase="planning")
    await watch.look()
    await world.report(lease, phase="executing")
    await watch.look()
    await world.finish(lease, settlement=Settlement.handed_back())
    await watch.look()
    await world.report(await world.claim_one(), phase="planning")
    assert await watch.types() == [
        "submitted",
        "queued",
        "leased",
        "started",
        "phase",
        "phase",
        "released",
        "queued",
        "leased",
        "started",
        "phase",
    ]


async def test_a_cascade_is_told_by_the_end_alone(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]})
    watch = Watch(world, family["b"])
    assert await watch.types() == ["submitted"]
    await world.run(family, "a", settlement=FAILED)
    await world.cascade()
    events = await watch.look()
    assert [event.type for event in events] == ["submitted", "ended"]
    assert (events[1].actor, events[1].data) == ("system", {"state": "cancelled", "reason": "upstream_failed"})
    await world.redrive(family["a"])
    assert await watch.types() == ["submitted", "ended", "revived"]


async def test_exhausted_losses_are_all_told(world: World) -> None:
    task_id = await world.submit()
    watch = Watch(world, task_id)
    for _ in range(3):
        world.advance(1_000)
        await world.ledger.promote(10)
        await world.claim_one()
        await watch.look()
        world.advance(61)
        await world.sweep(retry=FIXED)
        await watch.look()
    types = await watch.types()
    assert types.count("lost") == 3
    assert types[-1] == "ended"
    assert BOOM.type not in types
