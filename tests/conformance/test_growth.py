"""Jobs that grow: a running task adds tasks to its own job, all of them or none, once, and only while it holds it."""

import pytest

from conformance.families import ends_of, held
from conformance.growths import grow, grown, growth
from conformance.making import DONE, FAILED, ORGANIZATION, PARTLY_DONE, QUEUE, RESULT, World, retry_in
from perdure.domain import limits
from perdure.domain.states import JobState, TaskState
from perdure.errors import Conflict, Invalid, LeaseLost, Overloaded
from perdure.store.job_ledger import Grown
from perdure.store.ledger import ParentResult

S = TaskState
MAPPED = ("page-1", "page-2", "page-3")
MAP_AND_REDUCE: dict[str, list[str]] = {**{name: [] for name in MAPPED}, "join": list(MAPPED)}


async def test_a_running_task_maps_over_items_and_another_gets_all_results(world: World) -> None:
    family = await world.submit_job({"split": []})
    (split,) = await held(world, family, "split")
    answer = await grown(world, family, split, MAP_AND_REDUCE)
    assert (answer.job_id, answer.added, set(answer.task_ids)) == (family.id, 4, set(MAP_AND_REDUCE))
    job = await world.look_job(family)
    assert (job.state, job.total, job.open) == (JobState.RUNNING, 5, 5)
    assert await world.states(family) == {
        "split": S.RUNNING,
        **dict.fromkeys(MAPPED, S.QUEUED),
        "join": S.PENDING,
    }
    await world.finish(split)
    assert (await world.look_job(family)).state is JobState.RUNNING
    await world.run(family, *MAPPED)
    (join,) = await held(world, family, "join")
    assert (join.parents, join.job_id, join.name) == (3, family.id, "join")
    assert await world.ledger.inputs(join.hold) == {name: ParentResult(S.SUCCEEDED, RESULT) for name in MAPPED}
    await world.finish(join)
    job = await world.look_job(family)
    assert (job.state, ends_of(job)) == (JobState.SUCCEEDED, {"succeeded": 5})


async def test_added_tasks_may_wait_for_the_task_that_adds_them(world: World) -> None:
    family = await world.submit_job({"split": []})
    (split,) = await held(world, family, "split")
    await grown(world, family, split, {"page": ["split"], "plain": []})
    await world.run(family, "plain")
    assert await world.claim(5) == []
    await world.finish(split)
    await world.run(family, "page")
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


@pytest.mark.parametrize(
    ("ended", "child", "state"),
    [
        (DONE, {}, S.QUEUED),
        (PARTLY_DONE, {}, S.QUEUED),
        (FAILED, {}, S.CANCELLED),
        (FAILED, {"trigger": "all_done"}, S.QUEUED),
        (FAILED, {"trigger": "any_failed"}, S.QUEUED),
        (DONE, {"trigger": "any_failed"}, S.CANCELLED),
    ],
)
async def test_a_parent_that_has_ended_counts_as_it_ended(
    world: World, ended: object, child: dict[str, str], state: TaskState
) -> None:
    family = await world.submit_job({"early": [], "split": []})
    (early, split) = await held(world, family, "early", "split")
    await world.finish(early, settlement=ended)  # type: ignore[arg-type]
    await grown(world, family, split, {"page": ["early"], "after": ["page"]}, tasks={"page": child})
    await world.cascade()
    assert (await world.states(family))["page"] is state
    assert (await world.states(family))["after"] is (S.CANCELLED if state is S.CANCELLED else S.PENDING)
    await world.finish(split)


async def test_a_failed_parent_is_excused_by_an_edge_that_continues(world: World) -> None:
    family = await world.submit_job({"early": [], "split": []})
    (early, split) = await held(world, family, "early", "split")
    await world.finish(early, settlement=FAILED)
    await grown(world, family, split, {"page": ["early"]}, edges={("early", "page"): "continue"})
    await world.finish(split)
    await world.run(family, "page")


async def test_a_parent_that_is_open_or_has_an_end_on_its_way_is_waited_for(world: World) -> None:
    family = await world.submit_job({"early": [], "late": ["early"], "later": ["late"], "split": []})
    (early, split) = await held(world, family, "early", "split")
    await world.finish(early, settlement=FAILED)
    # `late` has ended with its parent; its own children hear of it by the cascade.
    await grown(world, family, split, {"page": ["late", "split"]}, tasks={"page": {"trigger": "all_done"}})
    assert (await world.look(family["page"])).waits == 2
    await world.cascade()
    assert (await world.look(family["page"])).waits == 1
    await world.finish(split)
    await world.run(family, "page")


async def test_the_same_again_adds_nothing_and_tells_the_same_ids(world: World) -> None:
    family = await world.submit_job({"split": []})
    (split,) = await held(world, family, "split")
    first = await grown(world, family, split, MAP_AND_REDUCE)
    with world.unchanged():
        again = await grow(world, split, MAP_AND_REDUCE)
    assert again == Grown(family.id, first.task_ids, 0)
    await world.run(family, *MAPPED)
    with world.unchanged():
        assert await grow(world, split, MAP_AND_REDUCE) == again
    await world.finish(split)
    await world.run(family, "join")


async def test_the_next_attempt_of_the_task_finds_what_the_last_one_added(world: World) -> None:
    family = await world.submit_job({"split": []})
    (split,) = await held(world, family, "split")
    first = await grown(world, family, split, {"page-1": [], "page-2": []})
    await world.finish(split, settlement=retry_in(0))
    (again, *pages) = await held(world, family, "split", "page-1", "page-2")
    second = await grown(world, family, again, {"page-1": [], "page-2": [], "page-3": ["page-1"]})
    assert second.added == 1
    assert first.task_ids.items() < second.task_ids.items()
    await world.finish(again, *pages)
    await world.run(family, "page-3")
    assert (await world.look_job(family)).total == 4


async def test_a_name_that_is_another_tasks_is_refused(world: World) -> None:
    family = await world.submit_job({"split": [], "page-2": []})
    (split, _other) = await held(world, family, "split", "page-2")
    with world.unchanged():
        answer = await grow(world, split, {"page-1": [], "page-2": []})
    assert isinstance(answer, Conflict)
    assert answer.fields["names"] == ["page-2"]
    await grown(world, family, split, {"page-1": []})
    with world.unchanged():
        changed = await grow(world, split, {"page-1": []}, tasks={"page-1": {"request_hash": "another"}})
    assert isinstance(changed, Conflict)


async def test_a_stale_attempt_adds_nothing(world: World) -> None:
    family = await world.submit_job({"split": []})
    (split,) = await held(world, family, "split")
    forged = split.hold._replace(token="another")
    with world.unchanged():
        assert isinstance(await grow(world, forged, {"page": []}), LeaseLost)
        assert isinstance(await grow(world, split.hold._replace(organization="other"), {"page": []}), LeaseLost)
    with pytest.raises(LeaseLost):
        await world.ledger.grower(forged)
    world.advance(61)
    with world.unchanged():
        assert isinstance(await grow(world, split, {"page": []}), LeaseLost)
    with pytest.raises(LeaseLost):
        await world.ledger.grower(split.hold)
    await world.sweep()
    (again,) = await held(world, family, "split")
    with world.unchanged():
        assert isinstance(await grow(world, split, {"page": []}), LeaseLost)
    await world.finish(again)
    with world.unchanged():
        assert isinstance(await grow(world, again, {"page": []}), LeaseLost)


async def test_a_task_that_is_being_cancelled_adds_nothing(world: World) -> None:
    family = await world.submit_job({"split": []})
    (split,) = await held(world, family, "split")
    await world.cancel(family["split"])
    with world.unchanged():
        assert isinstance(await grow(world, split, {"page": []}), Conflict)


async def test_a_job_that_is_being_cancelled_does_not_grow(world: World) -> None:
    family = await world.submit_job({"split": []})
    (split,) = await held(world, family, "split")
    await world.ledger.cancel_job(ORGANIZATION, family.id, "bob", None)
    with world.unchanged():
        assert isinstance(await grow(world, split, {"page": []}), Conflict)
    await world.cascade()
    await world.finish(split)


async def test_a_task_without_a_job_adds_nothing(world: World) -> None:
    lease = await world.lease()
    with world.unchanged():
        assert isinstance(await grow(world, lease, {"page": []}), Conflict)
    with pytest.raises(Conflict):
        await world.ledger.grower(lease.hold)


async def test_a_task_of_the_job_may_wait_for_what_its_parent_adds(world: World) -> None:
    family = await world.submit_job({"split": [], "join": ["split"], "last": ["join"]})
    (split,) = await held(world, family, "split")
    await grown(world, family, split, {"a": [], "b": ["a"]}, before={"a": ["join"], "b": ["join"]})
    assert (await world.look(family["join"])).waits == 3
    await world.finish(split)
    assert (await world.look(family["join"])).waits == 2
    await world.run(family, "a")
    await world.run(family, "b")
    (join,) = await held(world, family, "join")
    assert join.parents == 3
    assert set(await world.ledger.inputs(join.hold)) == {"split", "a", "b"}
    await world.finish(join)
    await world.run(family, "last")
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


async def test_what_waits_for_an_added_task_falls_and_rises_with_it(world: World) -> None:
    family = await world.submit_job({"split": [], "join": ["split"]})
    (split,) = await held(world, family, "split")
    await grown(world, family, split, {"page": []}, before={"page": ["join"]})
    await world.finish(split)
    await world.run(family, "page", settlement=FAILED)
    await world.cascade()
    assert (await world.states(family))["join"] is S.CANCELLED
    await world.redrive(family["page"])
    await world.cascade()
    await world.run(family, "page")
    await world.run(family, "join")
    assert (await world.look_job(family)).state is JobState.SUCCEEDED


async def test_an_added_task_that_ends_at_once_does_not_leave_its_child_waiting(world: World) -> None:
    family = await world.submit_job(
        {"early": [], "split": [], "join": ["split"]}, tasks={"join": {"trigger": "all_done"}}
    )
    (early, split) = await held(world, family, "early", "split")
    await world.finish(early, settlement=FAILED)
    await grown(world, family, split, {"page": ["early"]}, before={"page": ["join"]})
    assert (await world.states(family))["page"] is S.CANCELLED
    await world.finish(split)
    await world.cascade()
    await world.run(family, "join")


async def test_only_a_child_of_the_adding_task_that_still_waits_can_be_made_to_wait(world: World) -> None:
    family = await world.submit_job(
        {"early": [], "split": [], "stranger": ["early"], "hasty": ["early", "split"], "grandchild": ["hasty"]},
        tasks={"hasty": {"trigger": "any_succeeded"}},
    )
    (early, split) = await held(world, family, "early", "split")
    for name in ("stranger", "grandchild", "split"):
        with world.unchanged():
            answer = await grow(world, split, {"page": []}, before={"page": [name]})
        assert isinstance(answer, Conflict), name
        assert answer.fields["names"] == [name]
    await world.finish(early)
    with world.unchanged():
        assert isinstance(await grow(world, split, {"page": []}, before={"page": ["hasty"]}), Conflict)
    await world.finish(split)


async def test_circles_through_what_the_job_has_are_refused(world: World) -> None:
    family = await world.submit_job({"split": [], "join": ["split"], "last": ["join"]})
    (split,) = await held(world, family, "split")
    with world.unchanged():
        answer = await grow(world, split, {"page": ["last"]}, before={"page": ["join"]})
    assert isinstance(answer, Invalid)
    assert set(answer.fields["names"]) == {"page", "last", "join"}


async def test_names_that_the_job_does_not_have_are_refused(world: World) -> None:
    family = await world.submit_job({"split": []})
    (split,) = await held(world, family, "split")
    with world.unchanged():
        above = await grow(world, split, {"page": ["nobody"]})
        below = await grow(world, split, {"page": []}, before={"page": ["nobody"]})
    for answer in (above, below):
        assert isinstance(answer, Invalid)
        assert answer.fields["names"] == ["nobody"]


@pytest.mark.parametrize(
    ("name", "value"), [("JOB_MAX_TASKS", 5), ("JOB_MAX_EDGES", 4), ("JOB_MAX_WIDTH", 2), ("JOB_MAX_DEPTH", 2)]
)
async def test_a_job_does_not_grow_beyond_its_limits(
    world: World, monkeypatch: pytest.MonkeyPatch, name: str, value: int
) -> None:
    family = await world.submit_job({"split": [], "join": ["split"]})
    (split,) = await held(world, family, "split")
    graph: dict[str, list[str]] = {"a": ["split"], "b": ["split", "a"], "c": [], "d": ["c"]}
    monkeypatch.setattr(limits, name, value)
    with world.unchanged():
        assert isinstance(await grow(world, split, graph), Invalid)
    monkeypatch.undo()
    await grown(world, family, split, graph)


async def test_a_full_queue_takes_none_of_the_added_tasks(world: World) -> None:
    family = await world.submit_job({"split": []})
    (split,) = await held(world, family, "split")
    await world.definitions.put(ORGANIZATION, "queue", QUEUE, '{"depth":2}', "bob", None)
    with world.unchanged():
        assert isinstance(await grow(world, split, MAP_AND_REDUCE), Overloaded)
    await grown(world, family, split, {"page": []})


async def test_growths_of_one_call_stand_for_themselves(world: World) -> None:
    family = await world.submit_job({"split": [], "cut": []})
    (split, cut) = await held(world, family, "split", "cut")
    answers = await world.ledger.grow(
        [
            growth(world, split, {"page": []}),
            growth(world, split.hold._replace(token="another"), {"never": []}),
            growth(world, cut, {"page": []}, tasks={"page": {"request_hash": "another"}}),
            growth(world, cut, {"leaf": ["page"]}),
        ]
    )
    assert [type(each) for each in answers] == [Grown, LeaseLost, Conflict, Grown]
    assert set(await world.states(family)) == {"split", "cut", "page", "leaf"}


async def test_a_growth_starts_the_attempt_and_is_told_in_the_histories(world: World) -> None:
    family = await world.submit_job({"split": []})
    (split,) = await held(world, family, "split")
    await grown(world, family, split, MAP_AND_REDUCE)
    told = [each for each in await world.views.job_events(ORGANIZATION, family.id) if each.type == "grown"]
    (line,) = told
    assert line.data["tasks"] == 4
    assert set(line.data["names"]) == set(MAP_AND_REDUCE)
    submitted = (await world.views.job_events(ORGANIZATION, family.id))[0]
    assert (submitted.type, submitted.data["tasks"]) == ("submitted", 1)
    own = await world.views.events(ORGANIZATION, family["split"])
    assert [each.type for each in own] == ["submitted", "queued", "leased", "started", "grown"]
    assert own[-1].actor == "w"


async def test_what_a_job_is_told_of_itself_is_what_its_adder_was_submitted_as(world: World) -> None:
    family = await world.submit_job({"split": []}, policy="continue")
    (split,) = await held(world, family, "split")
    grower = await world.ledger.grower(split.hold)
    assert (grower.job_id, grower.policy, grower.principal, grower.initiator) == (
        family.id,
        "continue",
        "alice",
        "alice",
    )


async def test_ten_thousand_are_added_behind_one_and_before_one(world: World) -> None:
    family = await world.submit_job({"split": []})
    (split,) = await held(world, family, "split")
    names = [f"page-{n}" for n in range(limits.JOB_MAX_WIDTH)]
    graph: dict[str, list[str]] = {**{name: ["split"] for name in names}, "join": names}
    await grown(world, family, split, graph)
    await world.finish(split)
    leases = await world.claim(1000)
    while leases:
        await world.finish(*leases)
        leases = await world.claim(1000)
    assert (await world.look_job(family)).counts["succeeded"] == limits.JOB_MAX_WIDTH + 2
