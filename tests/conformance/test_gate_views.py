"""What a list of gates tells: who has slots, how many tasks wait and who is next, page by page; and what is stopped."""

import json
from typing import Any

import pytest

from conformance.making import DONE, KIND, ORGANIZATION, World, retry_in
from conformance.test_gates import at_rate, by_customer, in_order, options, submit_many
from perdure.domain.gate import Gate, GateSort
from perdure.domain.states import TaskState
from perdure.errors import Invalid, Malformed
from perdure.store.flow_views import SHOWN_MAX, GateFilter, GateView, PauseView

ALL = GateFilter()


async def gates_of(world: World, where: GateFilter = ALL, kind: str = KIND, limit: int = 100) -> list[GateView]:
    """All gates of a kind, whatever the size of a page."""
    found: list[GateView] = []
    cursor = None
    while True:
        page = await world.views.gates(ORGANIZATION, kind, where, limit, cursor)
        assert len(page.rows) <= limit
        found += page.rows
        cursor = page.cursor
        if cursor is None:
            return found


async def test_a_gate_tells_who_has_its_slots_and_who_is_next(world: World) -> None:
    ids = await submit_many(world, 5, options=by_customer(2))
    lease = await world.claim_one()
    (gate,) = await gates_of(world)
    assert (gate.sort, gate.name, gate.key, gate.slots) == (GateSort.CONCURRENCY, "work by customer", '"acme"', 2)
    assert (gate.taken, gate.waiting, gate.per) == (2, 3, None)
    assert [(each.task, each.state, each.worker) for each in gate.holders] == [
        (ids[0], TaskState.LEASED, "w"),
        (ids[1], TaskState.QUEUED, None),
    ]
    assert {each.since_us for each in gate.holders} == {await world.now_us()}
    assert [each.task for each in gate.next] == ids[2:]
    await world.finish(lease, settlement=DONE)
    (gate,) = await gates_of(world)
    assert ([each.task for each in gate.holders], [each.task for each in gate.next]) == (ids[1:3], ids[3:])


async def test_a_gate_that_nobody_is_at_is_told_as_empty(world: World) -> None:
    await submit_many(world, 1, options=by_customer(2))
    await world.finish(await world.claim_one(), settlement=DONE)
    (gate,) = await gates_of(world)
    assert (gate.taken, gate.waiting, gate.holders, gate.next) == (0, 0, (), ())
    assert await gates_of(world, GateFilter(waiting=True)) == []


async def test_a_slot_of_a_rate_says_when_it_is_free_whatever_became_of_its_task(world: World) -> None:
    ids = await submit_many(world, 2, options=at_rate(1, 60))
    await world.finish(await world.claim_one(), settlement=DONE)
    (gate,) = await gates_of(world)
    assert (gate.per, gate.waiting) == (60.0, 1)
    (slot,) = gate.holders
    assert (slot.task, slot.state, slot.free_us) == (ids[0], TaskState.SUCCEEDED, await world.now_us() + 60_000_000)
    world.advance(60)
    (gate,) = await gates_of(world)
    assert (gate.taken, gate.holders) == (0, ())


async def test_a_task_that_waits_for_its_retry_keeps_its_slot_of_an_order(world: World) -> None:
    ids = await submit_many(world, 2, options=in_order())
    await world.finish(await world.claim_one(), settlement=retry_in(60))
    (gate,) = await gates_of(world)
    assert [(each.task, each.state) for each in gate.holders] == [(ids[0], TaskState.RETRYING)]
    assert [each.task for each in gate.next] == [ids[1]]


async def test_the_more_urgent_are_next(world: World) -> None:
    await submit_many(world, 1, options=by_customer(1))
    (plain,) = await submit_many(world, 1, options=by_customer(1))
    (urgent,) = await submit_many(world, 1, options=by_customer(1), priority=9)
    (gate,) = await gates_of(world)
    assert [each.task for each in gate.next] == [urgent, plain]


async def test_of_many_at_a_gate_a_few_are_told_and_all_are_counted(world: World) -> None:
    await submit_many(world, 60, options=by_customer(25))
    (gate,) = await gates_of(world)
    assert (gate.taken, gate.waiting, len(gate.holders), len(gate.next)) == (25, 35, SHOWN_MAX, SHOWN_MAX)


async def every_sort(world: World) -> None:
    """Gates of all sorts, of this kind and of some whose names are like its."""
    for name in (KIND, f"{KIND} by a", f"{KIND} by a, b", f"{KIND}.more", f"{KIND}-", f"{KIND}0 by a", "wor", "worm"):
        for sort in GateSort:
            per_us = 60_000_000 if sort is GateSort.RATE else None
            for key in ("", '"a"', '"b"', '["a",1]', "7", "\U0001f600"):
                gates = options(Gate(sort, name, key, 1, per_us))
                await world.submit_all([world.task(options=gates) for _ in range(2 if key == '"b"' else 1)])


@pytest.mark.parametrize("limit", [1, 5, 100])
async def test_a_list_has_each_gate_of_the_kind_once_whatever_the_page(world: World, limit: int) -> None:
    await every_sort(world)
    names = [(each.sort, each.name, each.key) for each in await gates_of(world, limit=limit)]
    assert names == sorted({*names})
    assert len(names) == 4 * 3 * 6
    assert {name for _, name, _ in names} == {KIND, f"{KIND} by a", f"{KIND} by a, b"}
    waiting = await gates_of(world, GateFilter(waiting=True), limit=limit)
    assert [(each.sort, each.name, each.key) for each in waiting] == [each for each in names if each[2] == '"b"']
    keyed = await gates_of(world, GateFilter(keys=("7", "", "none", '"b"')), limit=limit)
    assert [(each.sort, each.name, each.key) for each in keyed] == [
        each for each in names if each[2] in ("7", "", '"b"')
    ]
    both = await gates_of(world, GateFilter(keys=("7", '"b"'), waiting=True), limit=limit)
    assert [each.key for each in both] == ['"b"'] * 12


async def test_a_long_list_is_walked_stretch_by_stretch(world: World) -> None:
    count = 1_100
    await world.submit_all([world.task(options=by_customer(1, f'"{number:05}"')) for number in range(count)])
    await submit_many(world, 1, options=by_customer(1, '"01050"'))
    assert [each.key for each in await gates_of(world, GateFilter(waiting=True), limit=3)] == ['"01050"']
    assert len(await gates_of(world, limit=1_000)) == count


async def test_gates_of_other_organizations_are_not_told(world: World) -> None:
    await world.submit_all([world.task(options=by_customer(1), organization="elsewhere") for _ in range(2)])
    assert await gates_of(world) == []
    assert len((await world.views.gates("elsewhere", KIND, ALL, 10)).rows) == 1


async def test_a_cursor_is_of_its_list_only(world: World) -> None:
    await every_sort(world)
    cursor = (await world.views.gates(ORGANIZATION, KIND, ALL, 1)).cursor
    assert cursor is not None
    for kind, where, said in ((KIND, GateFilter(waiting=True), cursor), ("other", ALL, cursor), (KIND, ALL, "x")):
        with pytest.raises(Malformed):
            await world.views.gates(ORGANIZATION, kind, where, 1, said)
    with pytest.raises(Invalid):
        await world.views.gates(ORGANIZATION, KIND, ALL, 0)


async def put(world: World, type: Any, name: str, document: dict[str, Any], actor: str) -> None:
    """Store a document."""
    await world.definitions.put(ORGANIZATION, type, name, json.dumps(document), actor)


async def stopped(world: World) -> list[PauseView]:
    """What is stopped."""
    return await world.views.pauses(ORGANIZATION)


async def test_what_is_paused_is_told_with_who_did_it_and_when(world: World) -> None:
    assert await stopped(world) == []
    began_us = await world.now_us()
    for number, type in enumerate(("queue", "kind", "organization")):
        name = ORGANIZATION if type == "organization" else "it"
        await put(world, type, name, {"paused": True}, f"actor-{number}")
        world.advance(1)
    await put(world, "queue", "other", {"paused": False, "depth": 7}, "nobody")
    await world.definitions.put("elsewhere", "queue", "foreign", '{"paused":true}', "nobody")
    assert [(each.type, each.name, each.state, each.actor) for each in await stopped(world)] == [
        ("queue", "it", "paused", "actor-0"),
        ("kind", "it", "paused", "actor-1"),
        ("organization", ORGANIZATION, "paused", "actor-2"),
    ]
    assert [each.since_us - began_us for each in await stopped(world)] == [0, 1_000_000, 2_000_000]


async def test_who_changes_something_else_has_not_paused_it(world: World) -> None:
    await put(world, "queue", "mail", {"depth": 7}, "alice")
    world.advance(1)
    await put(world, "queue", "mail", {"depth": 7, "paused": True}, "bob")
    paused_us = await world.now_us()
    world.advance(1)
    await put(world, "queue", "mail", {"depth": 8, "paused": True}, "carol")
    (told,) = await stopped(world)
    assert (told.actor, told.since_us) == ("bob", paused_us)
    await put(world, "queue", "mail", {"depth": 8, "paused": False}, "dave")
    assert await stopped(world) == []
    world.advance(1)
    await put(world, "queue", "mail", {"depth": 8, "paused": True}, "erin")
    (told,) = await stopped(world)
    assert (told.actor, told.since_us) == ("erin", await world.now_us())


async def test_a_breaker_is_told_until_it_is_closed(world: World) -> None:
    await put(world, "kind", KIND, {"kind": KIND, "breaker": {"failures": 2, "open_for": 30}}, "bob")
    await world.ledger.trip_breaker(ORGANIZATION, KIND, 30_000_000, "alice")
    now_us = await world.now_us()
    assert await stopped(world) == [
        PauseView(type="breaker", name=KIND, state="open", since_us=now_us, until_us=now_us + 30_000_000, actor="alice")
    ]
    world.advance(30)
    assert [each.state for each in await stopped(world)] == ["half_open"]
    await world.ledger.reset_breaker(ORGANIZATION, KIND, "alice")
    assert await stopped(world) == []
