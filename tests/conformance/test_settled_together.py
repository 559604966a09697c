"""What is settled in one call is judged one by one, by its worker and its receipt; each lease has what is its own."""

import pytest

from conformance.making import DONE, FAILED, ORGANIZATION, World, retry_in, settling
from conformance.test_cancelled_attempts import receipts_or_skip, with_receipt
from perdure.domain.states import TaskState
from perdure.store.ledger import ClaimRequest, Guard, SettleAnswer, WorkerOrder


@pytest.mark.parametrize("revoked", ["v", "w"])
@pytest.mark.parametrize("first", ["v", "w"])
async def test_a_revoked_worker_ends_nothing_and_another_ends_its_own(world: World, first: str, revoked: str) -> None:
    workers = [await world.worker(id) for id in ("v", "w")]
    await world.submit_all([world.task() for _ in range(4)])
    order = [first, *(id for id in workers if id != first)] * 2
    leases = [await world.claim_one(id) for id in order]
    await world.ledger.order(ORGANIZATION, revoked, WorkerOrder.REVOKE, "bob")
    answers = await world.ledger.settle([settling(each, DONE) for each in leases])
    lost, applied = SettleAnswer.LEASE_LOST, SettleAnswer.APPLIED
    assert [each.answer for each in answers] == [lost if id == revoked else applied for id in order]


@pytest.mark.parametrize("revoked", ["v", "w"])
async def test_only_what_a_revoked_worker_has_is_taken_from_it(world: World, revoked: str) -> None:
    for id in ("v", "w"):
        await world.worker(id)
    await world.submit_all([world.task() for _ in range(4)])
    leases = [(id, await world.claim_one(id)) for id in ("v", "w", "v", "w")]
    await world.ledger.order(ORGANIZATION, revoked, WorkerOrder.REVOKE, "bob")
    answers = await world.ledger.settle([settling(each, FAILED, Guard.WORKER_REVOKED) for _, each in leases])
    assert [each.answer is SettleAnswer.APPLIED for each in answers] == [id == revoked for id, _ in leases]


async def test_each_attempt_tells_the_build_of_its_own_worker(world: World) -> None:
    builds = {"w": "build-w", "v": "build-v", "u": "build-u"}
    for id, build in builds.items():
        await world.worker(id, build=build)
    await world.submit_all([world.task() for _ in range(6)])
    leases = [(id, await world.claim_one(id)) for id in [*builds] * 2]
    await world.ledger.settle([settling(lease, DONE) for _, lease in leases])
    for id, lease in leases:
        (attempt,) = await world.views.attempts(ORGANIZATION, lease.hold.task_id)
        assert (attempt.worker, attempt.build) == (id, builds[id])


@pytest.mark.parametrize("proven", [(), (0,), (1,), (2,), (0, 2)], ids=str)
async def test_receipts_are_found_wherever_they_are_among_what_is_settled(
    world: World, proven: tuple[int, ...]
) -> None:
    receipts_or_skip(world)
    leases = [await world.lease() for _ in range(3)]
    for place in proven:
        await with_receipt(world, leases[place])
    answers = await world.ledger.settle([settling(each, FAILED) for each in leases])
    meant = [TaskState.SUCCEEDED if place in proven else TaskState.DEAD_LETTERED for place in range(3)]
    assert [each.state for each in answers] == meant


async def test_a_repeated_claim_whose_ids_are_in_no_order_answers_the_same_beside_what_is_held(world: World) -> None:
    await world.worker()
    await world.submit_all([world.task() for _ in range(7)])
    older, between, newer = world.leases(2), world.leases(3), world.leases(2)
    for leases in (older, newer):
        assert len(await world.ledger.claim(ClaimRequest("w", leases))) == 2
    request = ClaimRequest("w", [between[1], between[2], between[0]])
    first = await world.ledger.claim(request)
    assert [each.hold.attempt_id for each in first] == [id for id, _ in request.leases]
    with world.unchanged():
        assert await world.ledger.claim(request) == first


async def test_a_claim_tells_the_checkpoint_of_each_task_that_was_tried(world: World) -> None:
    await world.worker()
    await world.submit_all([world.task() for _ in range(3)])
    leases = await world.claim(3)
    for place in (0, 2):
        await world.report(leases[place], checkpoint=f'{{"at":{place}}}')
    await world.ledger.settle([settling(each, retry_in(0)) for each in leases])
    await world.submit()
    request = ClaimRequest("w", world.leases(4))
    again = await world.ledger.claim(request)
    meant = {leases[0].hold.task_id: '{"at":0}', leases[2].hold.task_id: '{"at":2}'}
    assert [each.checkpoint for each in again] == [meant.get(each.hold.task_id) for each in again]
    repeated = {each.hold: each.checkpoint for each in await world.ledger.claim(request)}
    assert repeated == {each.hold: each.checkpoint for each in again}


async def test_a_repeated_claim_tells_the_checkpoint_that_was_written_meanwhile(world: World) -> None:
    await world.worker()
    await world.submit()
    request = ClaimRequest("w", world.leases(1))
    (lease,) = await world.ledger.claim(request)
    await world.report(lease, checkpoint='{"at":1}')
    (again,) = await world.ledger.claim(request)
    assert again.checkpoint == '{"at":1}'
