"""What can be read of queues, of workers and of a whole organization."""

from conformance.making import FAILED, KIND, ORGANIZATION, World, us
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState
from perdure.store.ledger import WorkerOrder
from perdure.store.views import CountRow


async def test_a_queue_shows_its_policy_and_what_is_in_it(world: World) -> None:
    await world.definitions.put(ORGANIZATION, "queue", "slow", '{"paused":true,"dead_letters":false,"depth":9}', "bob")
    first = await world.submit()
    world.advance(5)
    await world.submit()
    await world.submit(delay=60)
    await world.submit(queue="slow")
    default, slow = await world.views.queues(ORGANIZATION)
    assert (default.name, default.paused, default.dead_letters, default.depth) == ("default", False, True, None)
    assert default.counts == {"queued": 2, "pending": 1}
    assert default.oldest_queued_us == (await world.look(first)).created_us
    assert (slow.name, slow.paused, slow.dead_letters, slow.depth, slow.counts) == (
        "slow",
        True,
        False,
        9,
        {"queued": 1},
    )


async def test_an_empty_queue_with_a_policy_is_shown_and_partial_policies_have_defaults(world: World) -> None:
    await world.definitions.put(ORGANIZATION, "queue", "slow", '{"paused":true}', "bob")
    (slow,) = await world.views.queues(ORGANIZATION)
    assert (slow.paused, slow.dead_letters, slow.counts, slow.oldest_queued_us) == (True, True, {}, None)
    assert await world.views.queues("other") == []


async def test_queues_of_others_and_documents_of_other_sorts_are_not_queues(world: World) -> None:
    await world.definitions.put(ORGANIZATION, "kind", "a-kind", "{}", "bob")
    await world.definitions.put("other", "queue", "their-queue", "{}", "bob")
    await world.submit(organization="other", queue="their-other-queue")
    assert await world.views.queues(ORGANIZATION) == []


async def test_what_is_no_more_is_not_counted(world: World) -> None:
    lease = await world.lease()
    (queue,) = await world.views.queues(ORGANIZATION)
    assert (queue.counts, queue.oldest_queued_us) == ({"leased": 1}, None)
    seen = await world.views.overview(ORGANIZATION)
    assert (seen.counts, seen.oldest_queued_us) == ((CountRow("default", KIND, TaskState.LEASED, 1),), None)
    await world.finish(lease)
    (queue,) = await world.views.queues(ORGANIZATION)
    assert queue.counts == {"succeeded": 1}


async def test_the_oldest_may_be_in_front_of_the_line(world: World) -> None:
    lease = await world.lease()
    world.advance(5)
    await world.submit()
    waiting_since = await world.now_us()
    world.advance(5)
    await world.finish(lease, settlement=Settlement.handed_back())
    (queue,) = await world.views.queues(ORGANIZATION)
    assert queue.oldest_queued_us == waiting_since
    assert (await world.views.overview(ORGANIZATION)).oldest_queued_us == waiting_since


async def missing(world: World) -> tuple[str, ...]:
    """The kinds that nobody has, of the one queue there is."""
    (queue,) = await world.views.queues(ORGANIZATION)
    return queue.missing_kinds


async def test_kinds_that_no_active_worker_has_are_missing(world: World) -> None:
    await world.submit()
    await world.submit(kind="rare")
    await world.submit(kind="later", delay=60)
    assert await missing(world) == ("rare",)
    await world.worker("elsewhere", kinds=("rare",), queues=("other",))
    await world.worker("foreign", kinds=("rare",), organizations=("other",))
    assert await missing(world) == ("rare",)
    await world.worker("v", kinds=("rare", "x"), organizations=(ORGANIZATION,))
    assert await missing(world) == ()
    await world.ledger.order(ORGANIZATION, "v", WorkerOrder.REVOKE, "bob")
    assert await missing(world) == ("rare",)
    await world.ledger.order(ORGANIZATION, "v", WorkerOrder.PAUSE, "bob")
    assert await missing(world) == ()
    world.advance(121)
    assert await missing(world) == ("rare", KIND)
    await world.ledger.heartbeat("w", 1)
    assert await missing(world) == ("rare",)
    await world.ledger.leave("w")
    assert await missing(world) == ("rare", KIND)


async def test_workers_show_what_they_hold(world: World) -> None:
    await world.worker("v", kinds=("other",), capabilities=("gpu",), capacity=5)
    await world.lease()
    await world.lease()
    await world.ledger.order(ORGANIZATION, "v", WorkerOrder.DRAIN, "bob")
    views = {view.id: view for view in await world.views.workers(ORGANIZATION, us(10))}
    assert (views["w"].leases, views["v"].leases) == (2, 0)
    assert (views["v"].order, views["v"].capabilities, views["v"].capacity) == ("drain", ("gpu",), 5)
    assert (views["w"].kinds, views["w"].queues, views["w"].organizations) == ((KIND,), ("default",), ())


async def test_workers_that_were_not_seen_lately_are_left_out(world: World) -> None:
    world.advance(100)
    await world.worker("v")
    assert [view.id for view in await world.views.workers(ORGANIZATION, us(99))] == ["v"]
    assert [view.id for view in await world.views.workers(ORGANIZATION, None)] == ["v", "w"]


async def test_workers_of_other_organizations_are_absent(world: World) -> None:
    await world.worker("foreign", organizations=("other",))
    await world.worker("both", organizations=("other", ORGANIZATION))
    views = {view.id: view for view in await world.views.workers(ORGANIZATION, None)}
    assert set(views) == {"w", "both"}
    assert views["both"].organizations == (ORGANIZATION,)


async def test_the_leases_of_another_organization_are_not_counted(world: World) -> None:
    await world.submit(organization="other")
    await world.claim_one()
    await world.lease()
    (mine,) = await world.views.workers(ORGANIZATION, None)
    assert mine.leases == 1


async def test_an_organization_at_a_glance(world: World) -> None:
    begun = await world.now_us()
    leases = [await world.lease(), await world.lease(), await world.lease()]
    world.advance(1)
    await world.submit(priority=9)
    await world.submit(priority=1)
    await world.submit(kind="rare", queue="slow", delay=9)
    await world.submit(organization="other")
    await world.finish(leases[0])
    await world.finish(leases[1], settlement=FAILED)
    seen = await world.views.overview(ORGANIZATION)
    assert seen.counts == (
        CountRow("default", KIND, TaskState.DEAD_LETTERED, 1),
        CountRow("default", KIND, TaskState.LEASED, 1),
        CountRow("default", KIND, TaskState.QUEUED, 2),
        CountRow("default", KIND, TaskState.SUCCEEDED, 1),
        CountRow("slow", "rare", TaskState.PENDING, 1),
    )
    assert (seen.workers_active, seen.oldest_queued_us, seen.oldest_active_us) == (1, begun + us(1), begun)
    assert (seen.tasks, seen.attempts, seen.results) == (6, 2, 1)


async def test_an_empty_organization_at_a_glance(world: World) -> None:
    seen = await world.views.overview("nobody")
    assert (seen.counts, seen.tasks, seen.oldest_queued_us, seen.oldest_active_us) == ((), 0, None, None)


async def test_active_workers_are_counted(world: World) -> None:
    async def active() -> int:
        return (await world.views.overview(ORGANIZATION)).workers_active

    await world.worker("foreign", organizations=("other",))
    await world.worker("v", organizations=("other", ORGANIZATION))
    assert await active() == 2
    await world.ledger.order(ORGANIZATION, "v", WorkerOrder.REVOKE, "bob")
    assert await active() == 1
    await world.ledger.order(ORGANIZATION, "v", WorkerOrder.WORK, "bob")
    await world.ledger.leave("w")
    assert await active() == 1
    world.advance(121)
    assert await active() == 0


async def test_what_others_run_is_not_the_oldest_active(world: World) -> None:
    await world.submit(organization="other")
    await world.claim_one()
    assert (await world.views.overview(ORGANIZATION)).oldest_active_us is None
