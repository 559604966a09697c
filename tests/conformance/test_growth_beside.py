"""Jobs that grow beside others: tasks of the same names, jobs near their limits, ends that are on their way."""

import pytest

from conformance.families import held
from conformance.growths import grow, grown
from conformance.making import DONE, FAILED, HOUR, ORGANIZATION, Family, World, us
from perdure.domain import limits
from perdure.domain.attempt import Lease
from perdure.domain.states import JobState, TaskState
from perdure.errors import LeaseLost
from perdure.store.ledger import WorkerOrder

S = TaskState


async def growing(world: World, **others: list[str]) -> tuple[Family, Lease]:
    """A job whose task `split` is held, the others not being claimable yet."""
    family = await world.submit_job({"split": [], **others})
    (split,) = await held(world, family, "split")
    return family, split


# Who may


async def test_only_the_very_attempt_adds_tasks(world: World) -> None:
    family = await world.submit_job({"split": [], "cut": []})
    split, cut = await held(world, family, "split", "cut")
    for forged in ({"attempt_id": cut.hold.attempt_id}, {"task_id": cut.hold.task_id}, {"token": cut.hold.token}):
        with world.unchanged():
            assert isinstance(await grow(world, split.hold._replace(**forged), {"page": []}), LeaseLost), forged


async def test_a_revoked_worker_adds_nothing_and_costs_no_other_its_growth(world: World) -> None:
    family, split = await growing(world)
    await world.worker("v")
    await world.ledger.order(ORGANIZATION, "v", WorkerOrder.REVOKE, "bob")
    await grown(world, family, split, {"page": []})
    await world.ledger.order(ORGANIZATION, "w", WorkerOrder.REVOKE, "bob")
    with world.unchanged():
        assert isinstance(await grow(world, split, {"another": []}), LeaseLost)


async def test_past_its_time_to_stop_an_attempt_has_lost_its_lease(world: World) -> None:
    family = await world.submit_job({"split": []}, tasks={"split": {"lease": HOUR}})
    (split,) = await held(world, family, "split")
    await world.cancel(family["split"], grace_us=us(5))
    world.advance(5)
    with world.unchanged():
        assert isinstance(await grow(world, split, {"page": []}), LeaseLost)


# Other jobs


async def test_only_the_job_that_grows_has_more_tasks(world: World) -> None:
    beside = await world.submit_job({"a": []})
    (lease,) = await held(world, beside, "a")
    family, split = await growing(world)
    await grown(world, family, split, {"page": [], "other": []})
    assert [(await world.look_job(each)).total for each in (beside, family)] == [1, 3]
    await world.finish(lease)
    assert (await world.look_job(beside)).state is JobState.SUCCEEDED


async def test_tasks_of_these_names_in_other_jobs_are_not_taken_for_its_own(world: World) -> None:
    before = await world.submit_job({"page": [], "early": []}, tasks={"page": {"request_hash": "another"}})
    family, split = await growing_among(world, before)
    after = await world.submit_job({"page": [], "early": []}, tasks={"page": {"request_hash": "another"}})
    answer = await grown(world, family, split, {"page": ["split"], "last": ["page"]})
    assert answer.added == 2
    assert not {answer.task_ids["page"]} & {before["page"], after["page"]}


async def growing_among(world: World, beside: Family) -> tuple[Family, Lease]:
    family = await world.submit_job({"split": []}, tasks={"split": {"priority": 9}})
    lease = await world.claim_one()
    assert lease.hold.task_id == family["split"]
    assert beside.id != family.id
    return family, lease


async def test_a_circle_through_names_of_another_job_is_none(world: World) -> None:
    family = await world.submit_job(
        {"split": [], "join": ["split"], "late": []}, tasks={"late": {"delay": 60}, "split": {"priority": 9}}
    )
    (split,) = await held(world, family, "split")
    await world.submit_job({"join": [], "late": ["join"]}, tasks={"join": {"delay": 60}})
    await grown(world, family, split, {"page": ["late"]}, before={"page": ["join"]})


@pytest.mark.parametrize(("name", "value"), [("JOB_MAX_TASKS", 6), ("JOB_MAX_EDGES", 5)])
async def test_how_large_other_jobs_are_is_nothing_to_this_one(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    await world.submit_job({"a": [], **{f"b{n}": ["a"] for n in range(5)}}, tasks={"a": {"delay": 60}})
    family, split = await growing(world, join=["split"])
    monkeypatch.setattr(limits, name, value)
    await grown(world, family, split, {"page": ["split"]}, before={"page": ["join"]})


async def test_only_its_own_children_and_parents_make_a_task_wide(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = {"delay": 60}
    family = await world.submit_job(
        {"split": [], "wide": [], "c1": ["wide"], "c2": ["wide"], "join": ["split"]}, tasks={"wide": wide}
    )
    (split,) = await held(world, family, "split")
    monkeypatch.setattr(limits, "JOB_MAX_WIDTH", 2)
    await grown(world, family, split, {"page": ["split"]}, before={"page": ["join"]})


async def test_what_waits_for_more_parents_is_one_task_and_no_other(world: World) -> None:
    family = await world.submit_job({"split": [], "join": ["split"], "plain": []}, tasks={"plain": {"priority": 0}})
    split = await world.claim_one()
    assert split.hold.task_id == family["split"]
    await grown(world, family, split, {"page": []}, before={"page": ["join"]})
    parents = {lease.name: lease.parents for lease in await world.claim(10)}
    assert parents == {"plain": 0, "page": 0}
    await world.finish(split)


# Ends on their way


@pytest.mark.parametrize(
    ("trigger", "edge"),
    [("any_failed", "fail"), ("all_done", "fail"), ("all_succeeded", "continue"), ("any_failed", "continue")],
)
async def test_an_end_that_is_on_its_way_counts_once_and_when_it_comes(world: World, trigger: str, edge: str) -> None:
    family = await world.submit_job({"early": [], "late": ["early"], "later": ["late"], "split": []})
    early, split = await held(world, family, "early", "split")
    await world.finish(early, settlement=FAILED)
    # `late` has ended with its parent; that has not reached its children yet.
    graph, tasks = {"page": ["late"]}, {"page": {"trigger": trigger}}
    await grown(world, family, split, graph, edges={("late", "page"): edge}, tasks=tasks)
    assert await world.state(family["page"]) is S.PENDING
    await world.cascade()
    assert await world.state(family["page"]) is S.QUEUED


async def test_ends_of_others_that_are_on_their_way_hold_nothing_up(world: World) -> None:
    beside = await world.submit_job({"early": [], "late": ["early"], "later": ["late"]})
    await world.run(beside, "early", settlement=FAILED)
    family = await world.submit_job({"done": [], "split": []})
    done, split = await held(world, family, "done", "split")
    await world.finish(done, settlement=DONE)
    await grown(world, family, split, {"page": ["done"]})
    assert await world.state(family["page"]) is S.QUEUED


async def test_a_parent_that_succeeded_needs_no_excuse_and_one_that_failed_is_no_success(world: World) -> None:
    family = await world.submit_job({"good": [], "bad": [], "split": []})
    good, bad, split = await held(world, family, "good", "bad", "split")
    await world.finish(good)
    await world.finish(bad, settlement=FAILED)
    graph = {"after-good": ["good"], "after-bad": ["bad"]}
    tasks = {"after-bad": {"trigger": "any_succeeded"}}
    await grown(world, family, split, graph, edges={("good", "after-good"): "continue"}, tasks=tasks)
    assert await world.state(family["after-good"]) is S.QUEUED
    assert await world.state(family["after-bad"]) is S.CANCELLED
