"""What a task may read of its parents: their results, up to a limit that counts these alone."""

from collections.abc import Sequence

import pytest

from conformance.making import ORGANIZATION, RESULT, Family, World, us
from perdure.domain import limits
from perdure.domain.attempt import Lease
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState
from perdure.domain.task import Body
from perdure.errors import LeaseLost, TooLarge
from perdure.store.ledger import ParentResult, WorkerOrder

SIZE = len(RESULT.data)


async def child_of(world: World, *parents: str) -> Lease:
    """The claimed child of parents that have all succeeded."""
    family = await world.submit_job({**{name: [] for name in parents}, "child": parents})
    await world.run(family, *parents)
    return await world.claim_one()


async def test_results_as_large_as_the_limit_are_read(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    child = await child_of(world, "a", "b")
    monkeypatch.setattr(limits, "INPUTS_MAX_BYTES", 2 * SIZE)
    inputs = await world.ledger.inputs(child.hold)
    assert inputs == dict.fromkeys(("a", "b"), ParentResult(TaskState.SUCCEEDED, RESULT))


async def test_results_one_byte_larger_than_the_limit_are_refused(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = await child_of(world, "a", "b")
    monkeypatch.setattr(limits, "INPUTS_MAX_BYTES", 2 * SIZE - 1)
    with world.unchanged(), pytest.raises(TooLarge):
        await world.ledger.inputs(child.hold)


async def test_results_of_tasks_that_are_no_parents_do_not_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    child = await child_of(world, "a")
    await child_of(world, "a", "b")
    await world.finish(await world.lease())
    monkeypatch.setattr(limits, "INPUTS_MAX_BYTES", SIZE)
    assert set(await world.ledger.inputs(child.hold)) == {"a"}


async def test_results_of_a_parent_that_other_tasks_have_too_count_once(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    family: Family = await world.submit_job({"a": [], "b": ["a"], "c": ["a"], "d": ["a"]})
    await world.run(family, "a")
    children: Sequence[Lease] = await world.claim(3)
    monkeypatch.setattr(limits, "INPUTS_MAX_BYTES", SIZE)
    for child in children:
        assert set(await world.ledger.inputs(child.hold)) == {"a"}


async def test_each_parent_has_its_own_result(world: World) -> None:
    family = await world.submit_job({"a": [], "b": [], "c": [], "child": ["a", "b"]})
    own = {name: Body(f'"of {name}"'.encode()) for name in ("a", "b", "c")}
    for lease in await world.claim(3):
        await world.finish(lease, settlement=Settlement.succeeded(own[family.names[lease.hold.task_id]]))
    (child,) = await world.claim(1)
    inputs = await world.ledger.inputs(child.hold)
    assert inputs == {name: ParentResult(TaskState.SUCCEEDED, own[name]) for name in ("a", "b")}


async def test_an_attempt_of_a_revoked_worker_sees_nothing(world: World) -> None:
    child = await child_of(world, "a")
    await world.ledger.order(ORGANIZATION, "w", WorkerOrder.REVOKE, "bob")
    with world.unchanged(), pytest.raises(LeaseLost):
        await world.ledger.inputs(child.hold)


async def test_another_workers_revocation_hides_nothing(world: World) -> None:
    child = await child_of(world, "a")
    await world.worker("other")
    await world.ledger.order(ORGANIZATION, "other", WorkerOrder.REVOKE, "bob")
    assert set(await world.ledger.inputs(child.hold)) == {"a"}


async def test_an_attempt_past_its_time_to_stop_sees_nothing(world: World) -> None:
    child = await child_of(world, "a")
    await world.cancel(child.hold.task_id, grace_us=us(2))
    assert set(await world.ledger.inputs(child.hold)) == {"a"}
    world.advance(2)
    with world.unchanged(), pytest.raises(LeaseLost):
        await world.ledger.inputs(child.hold)
