"""Dead letters: kept, shown, run again as the next generation, discarded or purged; history stays."""

import msgspec
import pytest

from conformance.making import BOOM, DONE, FAILED, FAILED_UNKEPT, HOUR, KIND, ORGANIZATION, QUEUE, World
from perdure.domain import limits
from perdure.domain.settlement import Settlement
from perdure.domain.states import AttemptState, Reason, TaskState
from perdure.errors import Conflict, NotFound
from perdure.store.ledger import Redrive, SettleAnswer
from perdure.store.specified import Specified


@pytest.mark.parametrize("settlement", [FAILED, FAILED_UNKEPT], ids=lambda each: str(each.state))
async def test_a_redriven_task_runs_again_under_its_id(world: World, settlement: Settlement) -> None:
    lease = await world.lease()
    await world.finish(lease, settlement=settlement)
    assert await world.redrive(lease.hold.task_id) is TaskState.QUEUED
    again = await world.claim_one()
    assert (again.hold.task_id, again.generation, again.attempt) == (lease.hold.task_id, 2, 1)
    await world.finish(again)
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.generation) == (TaskState.SUCCEEDED, 2)


async def test_the_earlier_end_stays_in_the_history(world: World) -> None:
    lease = await world.lease()
    for _ in range(3):
        await world.finish(lease, settlement=FAILED)
        world.advance(1)
        await world.redrive(lease.hold.task_id)
        world.advance(1)
        lease = await world.claim_one()
    await world.finish(lease, settlement=DONE)
    attempts = await world.views.attempts(ORGANIZATION, lease.hold.task_id)
    assert [(each.generation, each.state) for each in attempts] == [
        (1, AttemptState.FAILED),
        (2, AttemptState.FAILED),
        (3, AttemptState.FAILED),
        (4, AttemptState.SUCCEEDED),
    ]
    events = await world.views.events(ORGANIZATION, lease.hold.task_id)
    ends = [(each.generation, each.data["state"]) for each in events if each.type == "ended"]
    assert ends == [(1, "dead_lettered"), (2, "dead_lettered"), (3, "dead_lettered"), (4, "succeeded")]
    assert [each.at_us for each in events] == sorted(each.at_us for each in events)
    assert len({each.id for each in events}) == len(events)


@pytest.mark.parametrize("state", ["queued", "leased", "succeeded", "cancelled", "expired"])
async def test_only_a_failed_task_can_be_redriven(world: World, state: str) -> None:
    from conformance.states import RECIPES

    subject = await RECIPES[TaskState(state)](world)
    with world.unchanged():
        assert isinstance(await world.redrive(subject.id), Conflict)


async def test_an_unknown_or_foreign_task_is_not_found(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease, settlement=FAILED)
    with world.unchanged():
        answers = await world.ledger.redrive(
            [Redrive(ORGANIZATION, world.ids.new(), "bob"), Redrive("other", lease.hold.task_id, "bob")]
        )
    assert all(isinstance(each, NotFound) for each in answers)
    with world.unchanged():
        assert await world.ledger.discard("other", [lease.hold.task_id], "bob") == [False]
        assert await world.ledger.purge("other", [lease.hold.task_id], "bob") == [False]


async def test_a_discarded_dead_letter_stays_readable_and_marked(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease, settlement=FAILED)
    assert await world.ledger.discard(ORGANIZATION, [lease.hold.task_id], "bob") == [True]
    task = await world.look(lease.hold.task_id)
    assert task.discarded
    assert task.last_error is not None
    assert task.last_error.message == BOOM.message
    assert await world.claim(1) == []


async def test_a_purged_dead_letter_is_gone_with_everything_of_it(world: World) -> None:
    lease = await world.lease()
    await world.report(lease, checkpoint="1", phase="executing")
    await world.finish(lease, settlement=FAILED)
    assert await world.ledger.purge(ORGANIZATION, [lease.hold.task_id], "bob") == [True]
    assert await world.views.task(ORGANIZATION, lease.hold.task_id) is None
    assert await world.ledger.purge(ORGANIZATION, [lease.hold.task_id], "bob") == [False]
    assert (await world.settle(lease, DONE)).answer is SettleAnswer.LEASE_LOST


async def test_a_dead_letter_of_an_open_job_is_not_purged(world: World) -> None:
    family = await world.submit_job({"a": [], "b": []}, tasks={"b": {"delay": HOUR}})
    await world.run(family, "a", settlement=FAILED)
    with world.unchanged():
        assert await world.ledger.purge(ORGANIZATION, [family["a"]], "bob") == [False]


async def test_a_task_that_succeeded_is_no_dead_letter(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease)
    with world.unchanged():
        assert await world.ledger.discard(ORGANIZATION, [lease.hold.task_id], "bob") == [False]
        assert await world.ledger.purge(ORGANIZATION, [lease.hold.task_id], "bob") == [False]


async def test_every_generation_has_one_end(world: World) -> None:
    lease = await world.lease()
    await world.finish(lease, settlement=FAILED)
    await world.redrive(lease.hold.task_id)
    await world.cancel(lease.hold.task_id)
    task = await world.look(lease.hold.task_id)
    assert (task.state, task.generation, task.reason) == (TaskState.CANCELLED, 2, Reason.USER)
    events = await world.views.events(ORGANIZATION, lease.hold.task_id)
    ends = [(each.generation, each.data["state"]) for each in events if each.type == "ended"]
    assert ends == [(1, "dead_lettered"), (2, "cancelled")]


async def test_what_bears_on_another_payload_is_told(world: World) -> None:
    lease = await world.lease()
    live = await world.submit()
    family = await world.submit_job({"a": [], "b": ["a"]}, tasks={"b": {"options": '{"bindings":{"x":"a","y":["a"]}}'}})
    await world.finish(lease, settlement=FAILED)
    ids = [family["b"], lease.hold.task_id, world.ids.new(), live, family["b"]]
    with world.unchanged():
        bound, ended, unknown, waiting, again = await world.ledger.specified(ORGANIZATION, ids)
    assert bound is not None
    assert bound[:3] == (KIND, QUEUE, limits.PRIORITY_DEFAULT)
    assert msgspec.json.decode(bound.options or "") == {"bindings": {"x": "a", "y": ["a"]}}
    assert again == bound
    plain = Specified(KIND, QUEUE, limits.PRIORITY_DEFAULT, None)
    assert (ended, unknown, waiting) == (plain, None, plain)
    assert await world.ledger.specified("other", ids) == [None] * 5
