"""Fair share: who floods a queue delays others by one round at most, whether an organization or a key of one."""

import json
from collections import Counter
from collections.abc import Sequence

import msgspec
import pytest

from conformance.making import ORGANIZATION, World, retry_in, us
from perdure.domain.attempt import Lease
from perdure.domain.gate import Gate, GateSort
from perdure.domain.limits import PRIORITY_MAX
from perdure.store.ledger import ClaimRequest, Submitted

FLOOD = 300


async def submit_many(world: World, count: int, organization: str = ORGANIZATION, **given: object) -> list[str]:
    """Submit that many tasks of an organization in one call."""
    answers = await world.submit_all([world.task(organization=organization, **given) for _ in range(count)])
    assert all(isinstance(each, Submitted) for each in answers)
    return [each.id for each in answers if isinstance(each, Submitted)]


def organizations(leases: Sequence[Lease]) -> list[str]:
    """Whose tasks these are, in order."""
    return [lease.hold.organization for lease in leases]


async def weigh(world: World, organization: str, weight: float) -> None:
    """Give an organization a weight."""
    await world.definitions.put(organization, "organization", organization, json.dumps({"weight": weight}), "bob")


async def test_one_task_of_an_organization_waits_for_one_of_each_of_the_others_at_most(world: World) -> None:
    await submit_many(world, FLOOD, "a")
    await submit_many(world, FLOOD, "b")
    await world.worker()
    await world.claim(50)
    late = await submit_many(world, 1, "c")
    assert late[0] in [each.hold.task_id for each in await world.claim(3)]


@pytest.mark.parametrize("count", [1, 7], ids=["one by one", "several at once"])
async def test_organizations_take_turns(world: World, count: int) -> None:
    for name in ("a", "b", "c"):
        await submit_many(world, 40, name)
    await world.worker()
    got = Counter({"a": 0, "b": 0, "c": 0})
    while got.total() < 63:
        got.update(organizations(await world.claim(count)))
        assert max(got.values()) - min(got.values()) <= 1


async def test_shares_follow_the_weights(world: World) -> None:
    await weigh(world, "a", 3)
    await weigh(world, "c", 0.5)
    for name in ("a", "b", "c"):
        await submit_many(world, 100, name)
    await world.worker()
    got = Counter(organizations([lease for _ in range(9) for lease in await world.claim(10)]))
    assert abs(got["a"] - 60) <= 2
    assert abs(got["b"] - 20) <= 2
    assert abs(got["c"] - 10) <= 2


async def test_who_was_idle_has_saved_up_nothing(world: World) -> None:
    await submit_many(world, FLOOD, "a")
    await submit_many(world, 5, "b")
    await world.worker()
    await world.claim(100)
    await submit_many(world, FLOOD, "b")
    assert Counter(organizations(await world.claim(20))) == {"a": 10, "b": 10}


async def test_one_organization_alone_keeps_the_order_of_age_in_all_of_its_queues(world: World) -> None:
    await world.worker(queues=("x", "y", "z"))
    ids = [await world.submit(queue="xyz"[n % 3]) for n in range(12)]
    got = [lease.hold.task_id for _ in range(4) for lease in await world.claim(3)]
    assert got == ids


async def test_within_an_organization_the_oldest_come_first(world: World) -> None:
    await world.worker(queues=("x", "y"))
    for n in range(10):
        await submit_many(world, 1, "a", queue="xy"[n % 2])
        await submit_many(world, 1, "b", queue="yx"[n % 2])
    leases = await world.claim(20)
    for name in ("a", "b"):
        mine = [lease.hold.task_id for lease in leases if lease.hold.organization == name]
        assert mine == sorted(mine)


async def test_turns_are_taken_within_a_priority_only(world: World) -> None:
    await submit_many(world, 20, "a", priority=9)
    await submit_many(world, 20, "b", priority=4)
    await world.worker()
    assert organizations(await world.claim(20)) == ["a"] * 20
    await submit_many(world, 20, "a", priority=4)
    assert Counter(organizations(await world.claim(20))) == {"a": 10, "b": 10}


async def test_a_flood_over_many_queues_counts_as_one(world: World) -> None:
    queues = tuple(f"q{n}" for n in range(30))
    await world.worker(queues=queues)
    for queue in queues:
        await submit_many(world, 10, "a", queue=queue)
    late = await submit_many(world, 1, "b", queue="q7")
    assert late[0] in [each.hold.task_id for each in await world.claim(2)]


async def test_more_organizations_than_a_claim_takes_all_get_their_turn(world: World) -> None:
    names = [f"org-{n}" for n in range(40)]
    for name in names:
        await submit_many(world, 3, name)
    await world.worker()
    got = [name for _ in range(5) for name in organizations(await world.claim(8))]
    assert sorted(got) == sorted(names)


async def claim_aged(world: World, count: int, ageing: float) -> list[Lease]:
    """Claim where a lane counts as one priority higher for each `ageing` seconds that its first task has waited."""
    return await world.ledger.claim(ClaimRequest("w", world.leases(count), us(ageing)))


async def test_what_has_waited_long_counts_as_more_urgent(world: World) -> None:
    await world.worker()
    low = await world.submit(priority=4)
    world.advance(200)
    high = await world.submit(priority=5)
    younger = await world.submit(priority=4)
    assert [each.hold.task_id for each in await claim_aged(world, 1, 100)] == [low]
    world.advance(2)
    assert [each.hold.task_id for each in await claim_aged(world, 2, 100)] == [high, younger]


async def test_what_has_not_waited_long_enough_waits_for_the_more_urgent(world: World) -> None:
    await world.worker()
    low = await world.submit(priority=3)
    world.advance(199)
    high = await world.submit(priority=5)
    assert [each.hold.task_id for each in await claim_aged(world, 2, 100)] == [high, low]


async def test_nothing_ages_where_ageing_is_off(world: World) -> None:
    await world.worker()
    low = await world.submit(priority=0)
    world.advance(100_000)
    high = await world.submit(priority=1)
    assert [each.hold.task_id for each in await claim_aged(world, 2, 0)] == [high, low]


async def test_the_oldest_of_all_never_starves(world: World) -> None:
    await world.worker()
    low = await world.submit(priority=0)
    for n in range(200):
        await submit_many(world, 2, priority=PRIORITY_MAX)
        world.advance(10)
        if low in [each.hold.task_id for each in await claim_aged(world, 1, 60)]:
            assert 10 * n >= 9 * 60 - 10
            return
    raise AssertionError("it never had its turn")


def by_customer(customer: str, *others: Gate) -> str:
    """The options of a task whose customers take turns."""
    gates = [Gate(GateSort.FAIR, "work by customer (default, 4)", json.dumps(customer), 1), *others]
    return msgspec.json.encode({"gates": gates}).decode()


async def flood(world: World, customer: str, count: int, *others: Gate) -> list[str]:
    """Submit that many tasks of a customer."""
    return await submit_many(world, count, options=by_customer(customer, *others))


def customers(leases: Sequence[Lease]) -> list[str]:
    """Whose tasks these are, in order."""
    return [msgspec.json.decode(lease.options or "{}")["gates"][0][2].strip('"') for lease in leases]


async def test_one_task_of_a_key_waits_for_one_of_each_other_key_at_most(world: World) -> None:
    await world.worker()
    await flood(world, "a", FLOOD)
    await flood(world, "b", FLOOD)
    await world.claim(20)
    late = await flood(world, "c", 1)
    assert late[0] in [each.hold.task_id for each in await world.claim(3)]


@pytest.mark.parametrize("count", [1, 5], ids=["one by one", "several at once"])
async def test_keys_take_turns(world: World, count: int) -> None:
    await world.worker()
    for customer in ("a", "b", "c"):
        await flood(world, customer, 12)
    got: list[str] = []
    while len(got) < 30:
        got += customers(await world.claim(count))
    for until in range(3, 31):
        taken = Counter(got[:until])
        assert max(taken.values()) - min(taken.values()) <= 2, "nobody is more than a round ahead"


async def test_within_a_key_the_oldest_come_first_and_none_is_left(world: World) -> None:
    await world.worker()
    ids = await flood(world, "a", 30)
    got: list[str] = []
    while leases := await world.claim(7):
        got += [each.hold.task_id for each in leases]
    assert got == ids


async def test_a_key_alone_fills_a_claim(world: World) -> None:
    await world.worker()
    await flood(world, "a", 30)
    assert len(await world.claim(10)) == 10


async def test_what_leaves_the_line_without_a_claim_gives_its_turn_on(world: World) -> None:
    await world.worker()
    ids = await flood(world, "a", 3)
    await world.cancel(ids[0])
    assert (await world.claim_one()).hold.task_id == ids[1]


async def test_keys_take_turns_at_a_limit_that_they_share_too(world: World) -> None:
    shared = Gate(GateSort.CONCURRENCY, "work", "", 1)
    await world.worker()
    await flood(world, "a", 10, shared)
    late = await flood(world, "b", 1, shared)
    world.advance(1)
    await world.finish(await world.claim_one())
    assert (await world.claim_one()).hold.task_id == late[0]


async def test_a_retry_takes_its_turn_again(world: World) -> None:
    await world.worker()
    ids = await flood(world, "a", 2)
    await world.finish(await world.claim_one(), settlement=retry_in(5))
    world.advance(5)
    await world.ledger.promote(100)
    assert [each.hold.task_id for each in await world.claim(3)] == [ids[1], ids[0]]
