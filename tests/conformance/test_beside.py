"""What an attempt stores, and what goes with a task that is removed, is nothing to the tasks beside it."""

import pytest

from conformance.making import FAILED, HOUR, KIND, ORGANIZATION, QUEUE, World, part, retry_in, us
from conformance.test_logs import line, messages
from conformance.test_neighbours import OTHER, put
from perdure.domain.attempt import Lease, Progress
from perdure.domain.settlement import Settlement
from perdure.domain.states import Reason, TaskState
from perdure.errors import Conflict
from perdure.store.ledger import ClaimRequest, Guard, Reported

TAKEN = Reported(False, None)
KNOWN = Reported(True, None)


# Pieces


async def sequences(world: World, task_id: str) -> list[tuple[str, int, bytes]]:
    """Key, sequence and content of each piece."""
    return [(each.key, each.sequence, each.data.data) for each in await world.views.parts(ORGANIZATION, task_id)]


async def test_a_named_piece_that_is_sent_again_moves_alone(world: World) -> None:
    mine, beside = await world.lease(), await world.lease()
    for lease in (mine, beside):
        for sequence, key in ((1, "row-1"), (2, "row-2")):
            assert await world.report(lease, part=part(sequence, b'"same"', key=key)) == TAKEN
    await world.settle(mine, retry_in(0))
    again = await world.claim_one()
    assert await world.report(again, part=part(1, b'"same"', key="row-2")) == KNOWN
    views = await world.views.parts(ORGANIZATION, mine.hold.task_id)
    assert {each.key: each.attempt_id for each in views} == {
        "row-1": mine.hold.attempt_id,
        "row-2": again.hold.attempt_id,
    }
    views = await world.views.parts(ORGANIZATION, beside.hold.task_id)
    assert [each.attempt_id for each in views] == [beside.hold.attempt_id] * 2


async def test_a_name_is_no_other_piece_because_an_unnamed_one_is_called_so(world: World) -> None:
    lease = await world.lease()
    unnamed = part(1, b'"unnamed"')
    assert await world.report(lease, part=unnamed) == TAKEN
    assert await world.report(lease, part=part(2, b'"named"', key=unnamed.key)) == TAKEN
    await world.settle(lease, retry_in(0))
    again = await world.claim_one()
    assert await world.report(again, part=part(1, b'"named"', key=unnamed.key)) == KNOWN
    views = await world.views.parts(ORGANIZATION, lease.hold.task_id)
    assert {each.data.data: each.attempt_id for each in views} == {
        b'"unnamed"': lease.hold.attempt_id,
        b'"named"': again.hold.attempt_id,
    }


async def test_the_last_piece_of_an_attempt_ends_nothing_for_the_next(world: World) -> None:
    lease = await world.lease()
    assert await world.report(lease, part=part(1, b'"last"', final=True)) == TAKEN
    await world.settle(lease, retry_in(0))
    again = await world.claim_one()
    assert await world.report(again, part=part(1, b'"first"')) == TAKEN
    assert await world.report(again, part=part(2, b'"second"')) == TAKEN


async def test_pieces_are_counted_apart_even_where_another_task_has_an_attempt_of_that_id(world: World) -> None:
    await world.submit()
    request = ClaimRequest("w", world.leases(1))
    (first,) = await world.ledger.claim(request)
    assert await world.report(first, part=part(1, b'"one"', key="row")) == TAKEN
    assert await world.report(first, part=part(2, b'"two"', final=True)) == TAKEN
    await world.settle(first, Settlement.gave_up("not needed"))
    await world.submit()
    (second,) = await world.ledger.claim(request)
    assert second.hold.attempt_id == first.hold.attempt_id
    assert await world.report(second, part=part(1, b'"other"', key="row")) == TAKEN
    assert await sequences(world, second.hold.task_id) == [("row", 1, b'"other"')]


async def test_another_tasks_piece_of_that_name_is_no_conflict(world: World) -> None:
    mine, beside = await world.lease(), await world.lease()
    assert await world.report(beside, part=part(1, b'"theirs"', key="row")) == TAKEN
    assert await world.report(mine, part=part(1, b'"mine"', key="row")) == TAKEN
    with world.unchanged():
        assert isinstance(await world.report(mine, part=part(2, b'"else"', key="row")), Conflict)


# What goes


async def told(world: World, lease: Lease) -> None:
    """A report of everything that there is."""
    await world.report(
        lease,
        progress=Progress(3, 4),
        phase="executing",
        checkpoint='{"at":3}',
        part=part(1, b'"piece"', key="row"),
        logs=(line(1, "said"),),
    )


async def test_a_task_that_goes_takes_nothing_of_a_task_that_runs(world: World) -> None:
    beside, gone = await world.lease(), await world.lease()
    await told(world, beside)
    await told(world, gone)
    await world.finish(gone, settlement=FAILED)
    before = await world.views.events(ORGANIZATION, beside.hold.task_id)
    assert await world.ledger.purge(ORGANIZATION, [gone.hold.task_id], "bob") == [True]
    task = await world.look(beside.hold.task_id)
    assert (task.phase, task.progress) == ("executing", {"done": 3, "total": 4})
    assert await sequences(world, task.id) == [("row", 1, b'"piece"')]
    assert await messages(world, task.id) == ["said"]
    assert await world.views.events(ORGANIZATION, task.id) == before
    await world.settle(beside, retry_in(0))
    assert (await world.claim_one()).checkpoint == '{"at":3}'


async def test_a_task_that_goes_takes_no_receipt_of_another(world: World) -> None:
    from conformance.test_caller import EFFECT, write_receipt

    if not world.store.capabilities.caller_transactions:
        pytest.skip("the store does not declare caller transactions")
    beside, gone = await world.lease(), await world.lease()
    write_receipt(world, beside)
    await world.finish(gone, settlement=FAILED)
    assert await world.ledger.purge(ORGANIZATION, [gone.hold.task_id], "bob") == [True]
    assert await world.ledger.receipt_known(beside.hold)
    await world.settle(beside, FAILED)
    assert (await world.look(beside.hold.task_id)).result == EFFECT


async def test_a_task_that_goes_ends_no_cascade_of_others(world: World) -> None:
    gone = await world.lease()
    await world.finish(gone, settlement=FAILED)
    family = await world.submit_job({"a": [], "b": ["a"], "c": ["b"], "d": ["c"]})
    await world.run(family, "a", settlement=FAILED)
    assert await world.ledger.purge(ORGANIZATION, [gone.hold.task_id], "bob") == [True]
    await world.cascade()
    assert set((await world.states(family)).values()) == {TaskState.DEAD_LETTERED, TaskState.CANCELLED}


async def test_a_cascade_that_goes_on_in_small_steps_forgets_nothing(world: World) -> None:
    families = [await world.submit_job({"a": [], "b": ["a"], "c": ["b"], "d": ["c"]}) for _ in range(3)]
    await world.finish(*await world.claim(3), settlement=FAILED)
    for _ in range(30):
        if not (await world.ledger.cascade(1)).more:
            break
    for family in families:
        assert set((await world.states(family)).values()) == {TaskState.DEAD_LETTERED, TaskState.CANCELLED}


async def test_a_job_that_goes_takes_no_history_of_another_job(world: World) -> None:
    from conformance.test_retention import KEEP, retain

    gone = await world.submit_job({"a": []})
    await world.run(gone, "a")
    world.advance(KEEP - 1)
    stays = await world.submit_job({"a": [], "b": []})
    await world.run(stays, "a", "b", settlement=FAILED)
    await world.redrive(stays["a"])
    await world.ledger.cancel_job(ORGANIZATION, stays.id, "bob", "not needed")
    before = await world.views.job_events(ORGANIZATION, stays.id)
    world.advance(2)
    await retain(world)
    assert await world.views.job(ORGANIZATION, gone.id) is None
    assert await world.views.job_events(ORGANIZATION, stays.id) == before


# Receipts, documents, time


async def test_a_receipt_is_known_by_organization_task_and_attempt(world: World) -> None:
    from conformance.test_caller import write_receipt

    if not world.store.capabilities.caller_transactions:
        pytest.skip("the store does not declare caller transactions")
    mine, beside = await world.lease(), await world.lease()
    write_receipt(world, mine)
    assert await world.ledger.receipt_known(mine.hold)
    assert not await world.ledger.receipt_known(beside.hold)
    for another in (
        {"organization": OTHER},
        {"task_id": beside.hold.task_id},
        {"attempt_id": beside.hold.attempt_id},
    ):
        assert not await world.ledger.receipt_known(mine.hold._replace(**another)), another


async def test_dead_letters_are_kept_whatever_documents_of_that_name_say_elsewhere(world: World) -> None:
    await put(world, "queue", QUEUE, OTHER, dead_letters=False)
    await put(world, "kind", QUEUE, dead_letters=False)
    lease = await world.lease(execution_limit=60)
    (facts,) = await world.ledger.facts([lease.hold])
    assert facts is not None
    assert facts.dead_letters
    await world.settle(lease, retry_in(50))
    world.advance(61)
    await world.ledger.expire(10)
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.reason) == (TaskState.DEAD_LETTERED, Reason.DEADLINE)


async def test_an_attempt_that_is_asked_to_stop_has_until_then_whatever_its_timeout(world: World) -> None:
    lease = await world.lease(timeout=5, lease=HOUR)
    await world.start(lease)
    await world.cancel(lease.hold.task_id, grace_us=us(1_000))
    world.advance(900)
    assert await world.ledger.find_doubtful(10) == []
    world.advance(100)
    assert [each.guard for each in await world.ledger.find_doubtful(10)] == [Guard.CANCEL_OVER]


async def test_a_postponed_task_was_queued_when_it_was_not_when_another_was(world: World) -> None:
    for _ in range(2):
        beside, mine = await world.submit(), await world.submit(kind=KIND)
        world.advance(7)
        submitted = (await world.look(mine)).created_us
        assert await world.ledger.postpone(ORGANIZATION, mine, await world.now_us() + us(60))
        events = await world.views.events(ORGANIZATION, mine)
        assert [each.at_us for each in events if each.type == "queued"] == [submitted]
        assert [each.type for each in await world.views.events(ORGANIZATION, beside)] == ["submitted", "queued"]


# Claims


async def test_a_claim_with_the_ids_of_another_worker_gives_nothing_of_what_that_one_holds(world: World) -> None:
    await world.worker("x")
    own = await world.submit()
    await world.claim_one("x")
    await world.submit()
    request = ClaimRequest("w", world.leases(1))
    (theirs,) = await world.ledger.claim(request)
    assert await world.ledger.claim(ClaimRequest("x", request.leases)) == []
    another = await world.submit()
    given = await world.ledger.claim(ClaimRequest("x", request.leases))
    assert [lease.hold.task_id for lease in given] == [another]
    assert theirs.hold.task_id not in (own, another)
    assert await world.renew(theirs)


async def test_more_tasks_past_their_deadline_than_one_claim_ends_are_not_given_out(world: World) -> None:
    await world.submit_all([world.task(execution_limit=60) for _ in range(1_005)])
    leases = [lease for _ in range(3) for lease in await world.claim(500)]
    await world.finish(*leases, settlement=Settlement.handed_back())
    world.advance(61)
    assert await world.claim(10) == []


async def test_only_an_attempt_that_is_tried_again_says_when(world: World) -> None:
    lease = await world.lease()
    await world.settle(lease, Settlement.handed_back())
    await world.settle(await world.claim_one(), retry_in(30))
    due_us = await world.now_us() + us(30)
    world.advance(30)
    await world.finish(await world.claim_one())
    events = await world.views.events(ORGANIZATION, lease.hold.task_id)
    assert [each.data["due_us"] for each in events if "due_us" in each.data] == [due_us]
