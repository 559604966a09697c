"""Random lives of a few tasks: histories only grow, and lists agree with what each task says of itself."""

import random
from collections.abc import Awaitable, Callable

import pytest

from backends.views.watching import Watch
from conformance.making import BOOM, DONE, FAILED, FAILED_UNKEPT, ORGANIZATION, PARTLY_DONE, World, retry_in
from perdure.domain.attempt import Lease, Renewal
from perdure.domain.settlement import Settlement
from perdure.domain.states import ENDED, TaskState
from perdure.store.views import TaskFilter

STEPS = 120

ENDS = (
    DONE,
    PARTLY_DONE,
    FAILED,
    FAILED_UNKEPT,
    retry_in(5),
    Settlement.snoozed(3_000_000),
    Settlement.handed_back(),
    Settlement.gave_up("no"),
    Settlement.retry(BOOM, 0),
)


class Life:
    """A world in which anything may happen next."""

    def __init__(self, world: World, seed: int) -> None:
        self.world = world
        self.chance = random.Random(seed)
        self.watches: dict[str, Watch] = {}
        self.leases: list[Lease] = []
        self.acts: tuple[Callable[[], Awaitable[object]], ...] = (
            self.submit,
            self.submit_job,
            self.claim,
            self.claim,
            self.start,
            self.phase,
            self.settle,
            self.settle,
            self.cancel,
            self.deliver,
            self.pass_time,
            self.sweep,
            self.tend,
            self.redrive,
            self.discard,
            self.postpone,
        )

    def any_task(self) -> str:
        """Some task there is."""
        return self.chance.choice(list(self.watches)) if self.watches else self.world.ids.new()

    async def submit(self) -> None:
        """One task, maybe delayed, maybe with a TTL."""
        given = self.chance.choice(({}, {"delay": 3}, {"ttl": 20}, {"execution_limit": 40}))
        task_id = await self.world.submit(**given)
        self.watches[task_id] = Watch(self.world, task_id)

    async def submit_job(self) -> None:
        """A small job."""
        family = await self.world.submit_job({"a": [], "b": ["a"], "c": ["b"]})
        for task_id in family.ids.values():
            self.watches[task_id] = Watch(self.world, task_id)

    async def claim(self) -> None:
        """Some leases."""
        self.leases += await self.world.claim(self.chance.randint(1, 3))

    async def with_lease(self, act: Callable[[Lease], Awaitable[object]]) -> None:
        """Do something with a lease that may have been lost long ago."""
        if self.leases:
            await act(self.chance.choice(self.leases))

    async def start(self) -> None:
        """A handler begins."""
        await self.with_lease(self.world.start)

    async def phase(self) -> None:
        """A handler tells a phase, or is refused."""
        await self.with_lease(lambda lease: self.world.report(lease, phase="planning"))

    async def settle(self) -> None:
        """An attempt ends, or is refused."""
        await self.with_lease(lambda lease: self.world.settle(lease, self.chance.choice(ENDS)))

    async def deliver(self) -> None:
        """A cancel, if there is one, reaches the handler."""
        await self.with_lease(
            lambda lease: self.world.ledger.renew([Renewal(lease.hold, True, delivered=True)]),
        )

    async def cancel(self) -> None:
        """Somebody cancels."""
        await self.world.cancel(self.any_task())

    async def pass_time(self) -> None:
        """Time passes."""
        self.world.advance(self.chance.choice((0.5, 4, 35)))

    async def sweep(self) -> None:
        """Lost attempts end."""
        await self.world.sweep()

    async def tend(self) -> None:
        """The other duties run."""
        await self.world.ledger.promote(100)
        await self.world.ledger.expire(100)
        await self.world.cascade()

    async def redrive(self) -> None:
        """Somebody redrives, or is refused."""
        await self.world.redrive(self.any_task())

    async def discard(self) -> None:
        """Somebody discards a dead letter."""
        await self.world.ledger.discard(ORGANIZATION, [self.any_task()], "bob")

    async def postpone(self) -> None:
        """Somebody postpones."""
        await self.world.ledger.postpone(ORGANIZATION, self.any_task(), await self.world.now_us() + 2_000_000)


@pytest.mark.parametrize("seed", range(8))
async def test_histories_only_grow_and_lists_agree(world: World, seed: int) -> None:
    life = Life(world, seed)
    await life.submit()
    for _ in range(STEPS):
        await life.chance.choice(life.acts)()
        for watch in life.watches.values():
            await watch.look()
    await lists_agree(world, list(life.watches))


async def lists_agree(world: World, ids: list[str]) -> None:
    """Every list has exactly the tasks that say of themselves that they belong there, and the counters count them."""
    views = {task_id: await world.look(task_id) for task_id in ids}
    bare = {view.id: view for view in (await world.views.tasks(ORGANIZATION, TaskFilter(), 1_000)).rows}
    assert bare.keys() == views.keys()
    for state in TaskState:
        page = await world.views.tasks(ORGANIZATION, TaskFilter(states=(state,)), 1_000)
        listed = [row.id for row in page.rows]
        assert sorted(listed) == sorted(id for id, view in views.items() if view.state == state), state
        assert page.rows == [bare[id] for id in listed]
    ended = await world.views.ended(ORGANIZATION, ids)
    assert {each.id: each.state for each in ended} == {
        id: view.state for id, view in views.items() if view.state in ENDED
    }
    counted = {row.state: row.tasks for row in (await world.views.overview(ORGANIZATION)).counts}
    assert counted == {
        state: count for state in TaskState if (count := sum(view.state == state for view in views.values()))
    }
