"""Unique tasks: of those with one key one is there at a time, or in a while; each submitter learns what came of it."""

import asyncio

import pytest

from conformance.making import DONE, World, settling, us
from conformance.uniques import CREATED, DEBOUNCED, EXISTING, REPLACED, in_state, options, submit, try_submit
from perdure.domain.gate import Gate, GateSort
from perdure.domain.states import ENDED, UNFINISHED, WAITING, Reason, TaskState
from perdure.errors import UniqueConflict
from perdure.store.ledger import SettleAnswer, Submitted


@pytest.mark.parametrize("state", sorted(UNFINISHED))
async def test_a_second_task_is_refused_while_the_first_has_not_ended(world: World, state: TaskState) -> None:
    first = await in_state(world, state)
    with world.unchanged():
        answer = await try_submit(world)
    assert isinstance(answer, UniqueConflict)
    assert (answer.task_id, answer.state) == (first, state)


@pytest.mark.parametrize("state", sorted(ENDED))
async def test_a_second_task_is_stored_once_the_first_has_ended(world: World, state: TaskState) -> None:
    await in_state(world, state)
    second = await submit(world)
    assert (second.outcome, await world.state(second.id)) == (CREATED, TaskState.QUEUED)
    assert isinstance(await try_submit(world), UniqueConflict)


@pytest.mark.parametrize("state", sorted(TaskState))
async def test_states_say_in_which_the_holder_keeps_its_key(world: World, state: TaskState) -> None:
    said = (TaskState.RUNNING, TaskState.SUCCEEDED)
    first = await in_state(world, state, states=said)
    second = await submit(world, "return_existing", states=said)
    if state in WAITING or state in said:
        assert second == Submitted(first, state, False, EXISTING)
    else:
        assert (second.outcome, second.id == first) == (CREATED, False)


async def test_other_keys_and_other_organizations_are_not_met(world: World) -> None:
    await submit(world)
    assert (await submit(world, key='work {"customer":"other"}')).outcome is CREATED
    assert (await submit(world, organization="elsewhere")).outcome is CREATED
    plain = await world.submit()
    assert await world.state(plain) is TaskState.QUEUED


async def test_the_existing_task_is_the_answer(world: World) -> None:
    first = await submit(world, "return_existing")
    with world.unchanged():
        assert await submit(world, "return_existing") == Submitted(first.id, TaskState.QUEUED, False, EXISTING)


async def test_within_lets_the_next_one_in_even_while_the_first_runs(world: World) -> None:
    await submit(world, within=60)
    world.advance(59.999)
    assert isinstance(await try_submit(world, within=60), UniqueConflict)
    world.advance(0.001)
    second = await submit(world, within=60)
    assert second.outcome is CREATED
    world.advance(59)
    assert isinstance(await try_submit(world, within=60), UniqueConflict)


async def test_a_throttle_takes_one_in_its_time_whatever_became_of_it(world: World) -> None:
    first = await submit(world, "throttle", within=60)
    await world.finish(await world.claim_one())
    world.advance(59)
    assert await submit(world, "throttle", within=60) == Submitted(first.id, TaskState.SUCCEEDED, False, EXISTING)
    world.advance(1)
    assert (await submit(world, "throttle", within=60)).outcome is CREATED


@pytest.mark.parametrize("state", sorted(WAITING))
async def test_a_holder_that_waits_is_replaced(world: World, state: TaskState) -> None:
    first = await in_state(world, state)
    second = await submit(world, "replace")
    assert (second.outcome, second.state) == (REPLACED, TaskState.QUEUED)
    old = await world.look(first)
    assert (old.state, old.reason) == (TaskState.CANCELLED, Reason.SUPERSEDED)
    assert [lease.hold.task_id for lease in await world.claim(5)] == [second.id]


@pytest.mark.parametrize("state", sorted(UNFINISHED - WAITING))
async def test_a_holder_that_has_been_claimed_is_not_replaced(world: World, state: TaskState) -> None:
    first = await in_state(world, state)
    with world.unchanged():
        answer = await try_submit(world, "replace")
    assert isinstance(answer, UniqueConflict)
    assert answer.task_id == first


@pytest.mark.parametrize("state", sorted(WAITING))
async def test_a_holder_that_waits_is_debounced(world: World, state: TaskState) -> None:
    first = await in_state(world, state)
    answer = await submit(world, "debounce", wait=5, payload='{"n":2}')
    waits = TaskState.RETRYING if state is TaskState.RETRYING else TaskState.PENDING
    assert answer == Submitted(first, waits, False, DEBOUNCED)
    world.advance(4.999)
    assert await world.claim(5) == []
    world.advance(0.001)
    lease = await world.claim_one()
    assert (lease.hold.task_id, lease.payload.data) == (first, b'{"n":2}')


@pytest.mark.parametrize("state", sorted(frozenset(TaskState) - WAITING))
async def test_a_debounce_after_the_claim_makes_a_new_task(world: World, state: TaskState) -> None:
    first = await in_state(world, state)
    second = await submit(world, "debounce", wait=5, delay=5)
    assert (second.outcome, second.id == first) == (CREATED, False)
    third = await submit(world, "debounce", wait=5)
    assert (third.outcome, third.id) == (DEBOUNCED, second.id)


async def test_a_debounce_goes_on_while_others_come_but_no_longer_than_its_bound(world: World) -> None:
    first = await submit(world, "debounce", wait=5, max_wait=12, delay=5)
    for _ in range(2):
        world.advance(4)
        assert await world.claim(1) == []
        answer = await submit(world, "debounce", wait=5, max_wait=12)
        assert (answer.id, answer.outcome) == (first.id, DEBOUNCED)
    world.advance(3.999)
    assert await world.claim(1) == []
    world.advance(0.001)
    assert (await world.claim_one()).hold.task_id == first.id


async def test_a_debounce_gives_the_ttl_of_the_last_submit(world: World) -> None:
    first = await submit(world, "debounce", wait=5, delay=5, ttl=8)
    world.advance(4)
    await submit(world, "debounce", wait=5, ttl=8)
    world.advance(5)
    assert (await world.claim_one()).hold.task_id == first.id


async def test_the_history_tells_of_each_debounce(world: World) -> None:
    first = await submit(world, "debounce", wait=5)
    await submit(world, "debounce", wait=5)
    world.advance(1)
    await submit(world, "debounce", wait=5)
    events = await world.views.events("default", first.id)
    told = [each for each in events if each.type == "debounced"]
    assert [(each.actor, each.data["until_us"] - each.at_us) for each in told] == [("alice", us(5))] * 2


async def test_a_debounced_task_gives_its_slot_to_the_next(world: World) -> None:
    gates = [Gate(GateSort.CONCURRENCY, "work", "", 1)]
    first = await submit(world, gates=gates)
    other = await submit(world, key="work other", gates=gates)
    assert other.state is TaskState.PENDING
    await submit(world, "debounce", wait=5, gates=gates)
    assert await world.state(other.id) is TaskState.QUEUED
    world.advance(5)
    await world.ledger.promote(100)
    assert await world.state(first.id) is TaskState.PENDING
    await world.finish(await world.claim_one())
    assert (await world.claim_one()).hold.task_id == first.id


async def test_a_replaced_task_gives_its_slot_to_the_one_in_its_place(world: World) -> None:
    gates = [Gate(GateSort.CONCURRENCY, "work", "", 1)]
    await submit(world, gates=gates)
    second = await submit(world, "replace", gates=gates)
    assert await world.state(second.id) is TaskState.QUEUED


async def test_twins_in_one_call_are_as_two_calls(world: World) -> None:
    tasks = [
        world.task(options=options("reject")),
        world.task(options=options("reject")),
        world.task(),
        world.task(options=options("return_existing")),
        world.task(options=options("replace")),
        world.task(options=options("debounce", wait=5), payload='{"n":2}'),
        world.task(options=options("debounce", wait=6), payload='{"n":3}'),
    ]
    answers = await world.submit_all(tasks)
    assert answers[0] == Submitted(tasks[0].id, TaskState.QUEUED, False, CREATED)
    assert isinstance(answers[1], UniqueConflict)
    assert answers[1].task_id == tasks[0].id
    assert answers[2] == Submitted(tasks[2].id, TaskState.QUEUED, False, CREATED)
    assert answers[3] == Submitted(tasks[0].id, TaskState.QUEUED, False, EXISTING)
    assert answers[4] == Submitted(tasks[4].id, TaskState.QUEUED, False, REPLACED)
    assert answers[5:] == [Submitted(tasks[4].id, TaskState.PENDING, False, DEBOUNCED)] * 2
    assert await world.state(tasks[0].id) is TaskState.CANCELLED
    assert [lease.hold.task_id for lease in await world.claim(5)] == [tasks[2].id]
    world.advance(6)
    assert (await world.claim_one()).payload.data == b'{"n":3}'


async def test_many_twins_in_one_call_make_one_task(world: World) -> None:
    for choice, given in (("debounce", {"wait": 5}), ("return_existing", {}), ("replace", {})):
        tasks = [world.task(options=options(choice, key=f"work {choice}", **given)) for _ in range(200)]
        answers = await world.submit_all(tasks)
        live = sorted({each.id for each in answers if isinstance(each, Submitted)})
        states = [await world.state(each) for each in live]
        assert sum(state in UNFINISHED for state in states) == 1, choice


async def test_in_bulk_the_refused_do_not_touch_the_others(world: World) -> None:
    keys = [f"work {n % 5}" for n in range(20)]
    answers = await world.submit_all([world.task(options=options(key=key)) for key in keys])
    assert [isinstance(each, Submitted) for each in answers] == [n < 5 for n in range(20)]
    again = await world.submit_all([world.task(options=options(key=f"work {n}")) for n in range(3, 8)])
    assert [isinstance(each, Submitted) for each in again] == [False, False, True, True, True]


async def test_a_repeated_call_is_answered_with_its_own_task(world: World) -> None:
    task = world.task(options=options("replace"))
    await world.submit_all([task])
    with world.unchanged():
        assert await world.submit_all([task]) == [Submitted(task.id, TaskState.QUEUED, True)]
    await submit(world, "replace")
    with world.unchanged():
        assert await world.submit_all([task]) == [Submitted(task.id, TaskState.CANCELLED, True)]


async def test_the_same_task_twice_in_a_call_is_a_repeat(world: World) -> None:
    task = world.task(options=options("reject"))
    answers = await world.submit_all([task, task])
    assert answers == [Submitted(task.id, TaskState.QUEUED, False), Submitted(task.id, TaskState.QUEUED, True)]


async def test_an_idempotency_key_stands_for_the_task_that_was_the_answer(world: World) -> None:
    first = await submit(world, "return_existing")
    keyed = {"idempotency_key": "k", "request_hash": "h"}
    assert (await submit(world, "return_existing", **keyed)).id == first.id
    await world.finish(await world.claim_one())
    again = await submit(world, "return_existing", **keyed)
    assert (again.id, again.replayed) == (first.id, True)


async def test_a_refused_submit_binds_no_idempotency_key(world: World) -> None:
    await submit(world)
    keyed = {"idempotency_key": "k", "request_hash": "h"}
    assert isinstance(await try_submit(world, **keyed), UniqueConflict)
    await world.finish(await world.claim_one())
    assert (await submit(world, **keyed)).replayed is False


async def test_twins_by_both_keys_are_one(world: World) -> None:
    first = await submit(world, "return_existing")
    task = {"options": options("return_existing"), "idempotency_key": "k", "request_hash": "h"}
    answers = await world.submit_all([world.task(**task), world.task(**task)])
    assert answers == [
        Submitted(first.id, TaskState.QUEUED, False, EXISTING),
        Submitted(first.id, TaskState.QUEUED, True, EXISTING),
    ]


async def test_of_many_at_once_one_is_stored(world: World) -> None:
    for choice in ("reject", "return_existing"):
        asked = [try_submit(world, choice, key=f"work {choice}") for _ in range(50)]
        answers = await asyncio.gather(*asked)
        made = [each for each in answers if isinstance(each, Submitted) and each.outcome is CREATED]
        assert len(made) == 1
        others = [each for each in answers if each is not made[0]]
        assert all(each.task_id == made[0].id for each in others if isinstance(each, UniqueConflict))
        assert all(each.id == made[0].id for each in others if isinstance(each, Submitted))


async def test_of_many_that_replace_at_once_one_is_left(world: World) -> None:
    answers = await asyncio.gather(*(submit(world, "replace") for _ in range(50)))
    states = [await world.state(each.id) for each in answers]
    assert states.count(TaskState.QUEUED) == 1
    assert [each.outcome for each in answers].count(CREATED) == 1


async def test_a_replacement_and_claims_at_once_lose_no_task(world: World) -> None:
    for _ in range(10):
        first = await submit(world)
        answer, leases = await asyncio.gather(try_submit(world, "replace"), world.claim(2))
        leases += await world.claim(2)
        taken = {each.hold.task_id for each in leases}
        if isinstance(answer, Submitted) and answer.outcome is REPLACED:
            assert taken == {answer.id}
        else:
            assert taken >= {first.id}
        settled = await world.ledger.settle([settling(each, DONE) for each in leases])
        assert {each.answer for each in settled} == {SettleAnswer.APPLIED}
