"""What is done to one task, job, queue or worker does nothing to those beside it."""

import json
from typing import Any

import pytest

from conformance.making import BOOM, DONE, FAILED, KIND, ORGANIZATION, QUEUE, World, settling, us
from perdure.domain.attempt import Progress, Report
from perdure.domain.settlement import Settlement
from perdure.domain.states import JobState, Reason, TaskState
from perdure.errors import Overloaded
from perdure.store.ledger import CancelAnswer, ClaimRequest, Guard, Reported, Submitted, WorkerOrder

OTHER = "beside"


async def put(world: World, type: Any, name: str, organization: str = ORGANIZATION, **document: Any) -> None:
    await world.definitions.put(organization, type, name, json.dumps(document), "bob")


async def dead_letter(world: World, **given: Any) -> str:
    lease = await world.lease(**given)
    await world.settle(lease, FAILED)
    return lease.hold.task_id


# Documents


async def test_a_document_is_known_by_organization_type_and_name(world: World) -> None:
    await put(world, "queue", "q", depth=1)
    await put(world, "kind", "q", depth=2)
    await put(world, "queue", "r", depth=3)
    await put(world, "queue", "q", OTHER, depth=4)
    places: list[tuple[str, Any, str, int]] = [
        (ORGANIZATION, "queue", "q", 1),
        (ORGANIZATION, "kind", "q", 2),
        (ORGANIZATION, "queue", "r", 3),
        (OTHER, "queue", "q", 4),
    ]
    for organization, type, name, depth in places:
        found = await world.definitions.get(organization, type, name)
        assert found is not None
        assert json.loads(found.document) == {"depth": depth}
    assert await world.definitions.get(OTHER, "kind", "q") is None
    assert await world.definitions.delete(ORGANIZATION, "queue", "q", "bob")
    left = [(place, await world.definitions.get(*place[:3])) for place in places]
    assert [place[3] for place, found in left if found is not None] == [2, 3, 4]


# Idempotency


async def test_a_key_belongs_to_its_organization_and_principal(world: World) -> None:
    own = {"idempotency_key": "k", "request_hash": "h"}
    tasks = [world.task(**own), world.task(organization=OTHER, **own), world.task(principal="carol", **own)]
    for task in tasks:
        (answer,) = await world.submit_all([task])
        assert answer == Submitted(task.id, TaskState.QUEUED, False)
    for task in tasks:
        (answer,) = await world.submit_all([task._replace(id=world.ids.new())])
        assert answer == Submitted(task.id, TaskState.QUEUED, True)


async def test_a_job_sent_again_names_its_own_tasks_only(world: World) -> None:
    first = world.job({"a": [], "b": ["a"]}, idempotency_key="k", request_hash="h")
    other = world.job({"c": []}, id=first.id, organization=OTHER)
    beside = world.job({"d": []})
    await world.ledger.submit_jobs([first, other, beside])
    again = world.job({"a": [], "b": ["a"]}, idempotency_key="k", request_hash="h")
    (answer,) = await world.ledger.submit_jobs([again])
    assert getattr(answer, "task_ids", answer) == {task.rare.name: task.id for task in first.tasks}


# Depth


async def test_only_its_own_tasks_fill_a_queue_and_an_organization(world: World) -> None:
    await put(world, "queue", QUEUE, depth=2)
    await put(world, "organization", OTHER, OTHER, depth=2)
    await put(world, "queue", "side", OTHER, depth=1)
    for _ in range(5):
        await world.submit(queue="side")
    for _ in range(2):
        await world.submit()
        await world.submit(organization=OTHER)
    for given, full in (
        ({}, True),
        ({"organization": OTHER}, True),
        ({"organization": OTHER, "queue": "side"}, True),
        ({"queue": "side"}, False),
        ({"organization": "third"}, False),
    ):
        (answer,) = await world.submit_all([world.task(**given)])
        assert isinstance(answer, Overloaded) == full, given


# Dead letters


async def test_only_the_dead_letters_that_are_named_are_discarded(world: World) -> None:
    first, second = await dead_letter(world), await dead_letter(world)
    assert await world.ledger.discard(ORGANIZATION, [first], "bob") == [True]
    assert (await world.look(first)).discarded
    assert not (await world.look(second)).discarded


async def test_an_open_job_keeps_no_dead_letter_of_a_task_alone(world: World) -> None:
    await world.submit_job({"a": [], "b": ["a"]})
    alone = await dead_letter(world, priority=9)
    assert await world.ledger.purge(ORGANIZATION, [alone], "bob") == [True]


async def test_whether_dead_letters_are_kept_is_said_by_ones_own_queue(world: World) -> None:
    await put(world, "queue", "side", dead_letters=False)
    await world.worker("both", queues=(QUEUE, "side"))
    await world.submit()
    await world.submit(queue="side")
    leases = await world.claim(2, "both")
    facts = await world.ledger.facts([lease.hold for lease in leases])
    told = {lease.queue: each.dead_letters for lease, each in zip(leases, facts, strict=True) if each is not None}
    assert told == {QUEUE: True, "side": False}


# Cancels


async def test_an_unknown_task_is_not_found_among_ended_ones(world: World) -> None:
    await dead_letter(world)
    answer = await world.cancel(world.ids.new())
    assert answer.answer is CancelAnswer.NOT_FOUND


async def test_a_job_that_is_cancelled_stops_no_other(world: World) -> None:
    stopped = await world.submit_job({"a": []})
    other = await world.submit_job({"a": []})
    assert await world.ledger.cancel_job(ORGANIZATION, stopped.id, "bob", None)
    await world.cascade()
    assert (await world.look_job(stopped)).state is JobState.CANCELLED
    assert await world.state(other["a"]) is TaskState.QUEUED


async def test_nothing_more_is_to_be_done_when_only_another_job_is_open(world: World) -> None:
    stopped = await world.submit_job({"a": []}, tasks={"a": {"priority": 9}})
    await world.claim_one()
    await world.submit_job({"a": []})
    await world.ledger.cancel_job(ORGANIZATION, stopped.id, "bob", None)
    await world.cascade()
    swept = await world.ledger.cascade(100)
    assert (swept.moved, swept.more) == (0, False)


async def test_a_request_to_stop_stands_when_the_job_fails_afterwards(world: World) -> None:
    family = await world.submit_job({"a": [], "b": []}, policy="cancel_job")
    lease, _ = await world.claim(2)
    await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", "not needed")
    await world.settle(lease, FAILED)
    await world.cascade()
    world.advance(60)
    await world.sweep()
    job = await world.look_job(family)
    assert (job.state, job.finished_us is not None) == (JobState.CANCELLED, True)


async def test_a_request_to_stop_a_job_that_is_stopping_by_failure_is_kept(world: World) -> None:
    family = await world.submit_job({"a": [], "b": []}, policy="cancel_job")
    first, _ = await world.claim(2)
    await world.settle(first, FAILED)
    assert await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", "not needed")
    world.advance(60)
    await world.cascade()
    await world.sweep()
    world.advance(60)
    await world.sweep()
    assert (await world.look_job(family)).state is JobState.CANCELLED


# Jobs


async def test_a_job_begins_when_a_task_of_its_own_is_claimed(world: World) -> None:
    first = await world.submit_job({"a": []})
    second = await world.submit_job({"a": []})
    await world.claim_one()
    assert (await world.look_job(first)).state is JobState.RUNNING
    assert (await world.look_job(second)).state is JobState.PENDING


async def test_an_end_counts_for_its_own_job_only(world: World) -> None:
    first = await world.submit_job({"a": [], "b": []})
    second = await world.submit_job({"a": [], "b": []})
    leases = {lease.hold.task_id: lease for lease in await world.claim(4)}
    await world.settle(leases[first["a"]], DONE)
    assert (await world.look_job(first)).counts["succeeded"] == 1
    assert not (await world.look_job(second)).counts.get("succeeded")
    answers = await world.ledger.settle([settling(leases[first["b"]], FAILED), settling(leases[second["a"]], DONE)])
    assert [each.state for each in answers] == [TaskState.DEAD_LETTERED, TaskState.SUCCEEDED]
    assert (await world.look_job(first)).state is JobState.FAILED
    assert (await world.look_job(second)).state is JobState.RUNNING


# Workers


async def test_a_claim_repeated_by_another_worker_gives_away_nothing(world: World) -> None:
    await world.worker("x")
    await world.submit()
    request = ClaimRequest("w", world.leases(1))
    (lease,) = await world.ledger.claim(request)
    assert await world.ledger.claim(ClaimRequest("x", request.leases)) == []
    assert await world.renew(lease)


async def test_a_revoked_worker_costs_no_other_its_attempts(world: World) -> None:
    await world.worker("x")
    lease = await world.lease()
    await world.ledger.order(ORGANIZATION, "x", WorkerOrder.REVOKE, "bob")
    assert await world.ledger.find_doubtful(10) == []
    (reported,) = await world.ledger.report([Report(lease.hold, Progress(1))])
    assert isinstance(reported, Reported)
    assert await world.renew(lease)
    (settled,) = await world.ledger.settle([settling(lease, Settlement.revoked_and_queued(), Guard.WORKER_REVOKED)])
    assert settled.state is None
    assert (await world.settle(lease, DONE)).state is TaskState.SUCCEEDED


# Receipts


async def test_a_receipt_is_of_one_task_even_where_another_has_an_attempt_of_that_id(world: World) -> None:
    from conformance.test_caller import write_receipt

    if not world.store.capabilities.caller_transactions:
        pytest.skip("the store does not declare caller transactions")
    await world.submit()
    request = ClaimRequest("w", world.leases(1))
    (first,) = await world.ledger.claim(request)
    write_receipt(world, first)
    await world.settle(first, Settlement.retry(BOOM, us(1)))
    assert await world.state(first.hold.task_id) is TaskState.SUCCEEDED
    other = await world.submit()
    (second,) = await world.ledger.claim(request)
    assert second.hold.task_id == other
    (facts,) = await world.ledger.facts([second.hold])
    assert facts is not None
    assert facts.receipt is None
    assert (await world.settle(second, FAILED)).state is TaskState.DEAD_LETTERED


async def test_facts_tell_the_result_of_the_receipt(world: World) -> None:
    from conformance.test_caller import EFFECT, write_receipt

    if not world.store.capabilities.caller_transactions:
        pytest.skip("the store does not declare caller transactions")
    lease = await world.lease()
    write_receipt(world, lease)
    (facts,) = await world.ledger.facts([lease.hold])
    assert facts is not None
    assert facts.receipt is not None
    assert facts.receipt.result == EFFECT


# Lines


async def test_of_two_kinds_the_older_task_goes_first_one_at_a_time(world: World) -> None:
    await world.worker("both", kinds=(KIND, "other"), queues=(QUEUE, "side"))
    ids = [await world.submit(kind=KIND, queue=queue) for queue in (QUEUE, "side", QUEUE, QUEUE, "side")]
    assert [(await world.claim_one("both")).hold.task_id for _ in ids] == ids


async def test_two_long_lines_of_one_priority_are_served_in_order_each_task_once(world: World) -> None:
    await world.worker("both", kinds=(KIND,), queues=(QUEUE, "side"))
    ids = [await world.submit(kind=KIND, queue=QUEUE if n % 3 else "side") for n in range(120)]
    assert [lease.hold.task_id for lease in await world.claim(120, "both")] == ids


# Time


async def test_a_held_tasks_ttl_and_deadline_are_nothing_to_expire(world: World) -> None:
    await world.lease(ttl=50, execution_limit=70)
    assert (await world.ledger.expire(10)).next_us is None


async def test_what_waits_for_a_parent_is_not_the_next_to_be_due(world: World) -> None:
    await world.submit_job({"a": [], "b": ["a"]})
    await world.submit(delay=500)
    assert (await world.ledger.promote(10)).next_us == await world.now_us() + us(500)


async def test_a_delayed_child_was_not_queued_before_its_time(world: World) -> None:
    family = await world.submit_job({"a": [], "b": ["a"]}, tasks={"b": {"delay": 500}})
    await world.finish(await world.claim_one())
    assert await world.state(family["b"]) is TaskState.PENDING
    assert (await world.look(family["b"])).waits == 0
    events = await world.views.events(ORGANIZATION, family["b"])
    assert [each.type for each in events] == ["submitted"]


async def test_a_cancelled_attempt_is_lost_even_while_losses_are_suspended(world: World) -> None:
    lease = await world.lease(lease=5)
    await world.cancel(lease.hold.task_id, grace_us=us(100))
    await world.ledger.suspend_losses(await world.now_us() + us(60))
    world.advance(6)
    assert [each.guard for each in await world.ledger.find_doubtful(10)] == [Guard.LEASE_OVER]
    await world.sweep()
    assert (await world.look(lease.hold.task_id)).reason is Reason.USER


async def test_more_expired_tasks_than_one_claim_ends_are_not_given_out(world: World) -> None:
    await world.submit_all([world.task(ttl=5) for _ in range(1_005)])
    world.advance(6)
    assert await world.claim(10) == []
