"""Lists of tasks and jobs, page by page."""

import pytest

from conformance.making import BOOM, DONE, FAILED, FAILED_UNKEPT, ORGANIZATION, PARTLY_DONE, World, retry_in
from perdure.domain import limits
from perdure.domain.settlement import Settlement
from perdure.domain.states import ENDED, UNFINISHED, JobState, Reason, TaskState
from perdure.errors import Invalid, Malformed
from perdure.store.sort import Sort
from perdure.store.views import TaskFilter

EVERYTHING = TaskFilter()


async def listed(world: World, where: TaskFilter, limit: int, organization: str = ORGANIZATION) -> list[str]:
    """The ids on all pages, each of at most `limit`, newest first. Oldest first they are the same the other way."""
    newest_first = await paged(world, where, limit, organization, Sort.NEWEST)
    assert await paged(world, where, limit, organization, Sort.OLDEST) == newest_first[::-1]
    return newest_first


async def paged(world: World, where: TaskFilter, limit: int, organization: str, sort: Sort) -> list[str]:
    found: list[str] = []
    cursor = None
    for _ in range(10_000):
        page = await world.views.tasks(organization, where, limit, cursor, sort)
        assert len(page.rows) <= limit
        found += [row.id for row in page.rows]
        cursor = page.cursor
        if cursor is None:
            return found
    raise AssertionError("the list does not end")


async def submitted(world: World, count: int, **given: object) -> list[str]:
    """Ids of new tasks, newest first."""
    tasks = [world.task(**given) for _ in range(count)]
    await world.submit_all(tasks)
    return [task.id for task in reversed(tasks)]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 100])
async def test_everything_comes_newest_first_whatever_the_page(world: World, limit: int) -> None:
    newest_first = await submitted(world, 7)
    assert await listed(world, EVERYTHING, limit) == newest_first
    assert await listed(world, TaskFilter(states=tuple(UNFINISHED)), limit) == newest_first


async def test_an_exact_page_has_no_next(world: World) -> None:
    await submitted(world, 3)
    assert (await world.views.tasks(ORGANIZATION, EVERYTHING, 3)).cursor is None
    assert (await world.views.tasks(ORGANIZATION, EVERYTHING, 2)).cursor is not None
    assert await world.views.tasks("other", EVERYTHING, 2) == ([], None)


@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_ended_ones_come_last_ended_first(world: World, limit: int) -> None:
    leases = [await world.lease() for _ in range(6)]
    settlements = [None, FAILED, Settlement.gave_up("no"), None, FAILED, None]
    for lease, settlement in zip(leases[::-1], settlements, strict=True):
        await world.finish(lease, settlement=settlement or Settlement.succeeded(lease.payload))
        world.advance(1)
    in_order = [lease.hold.task_id for lease in leases]
    assert await listed(world, TaskFilter(states=tuple(ENDED)), limit) == in_order
    failed = [in_order[1], in_order[4]]
    assert await listed(world, TaskFilter(states=(TaskState.DEAD_LETTERED,)), limit) == failed
    both = TaskFilter(states=(TaskState.DEAD_LETTERED, TaskState.CANCELLED))
    assert await listed(world, both, limit) == [in_order[1], in_order[3], in_order[4]]


async def test_each_end_can_be_asked_for(world: World) -> None:
    ended: dict[TaskState, list[str]] = {state: [] for state in ENDED}
    for _ in range(3):
        for settlement in (DONE, PARTLY_DONE, FAILED, FAILED_UNKEPT, Settlement.gave_up("no")):
            lease = await world.lease()
            await world.finish(lease, settlement=settlement)
            ended[settlement.state].insert(0, lease.hold.task_id)
        ended[TaskState.EXPIRED].insert(0, await world.submit(ttl=1))
        world.advance(2)
        await world.ledger.expire(10)
    for state, ids in ended.items():
        assert await listed(world, TaskFilter(states=(state,)), 2) == ids, state
        others = tuple(ENDED - {state})
        assert not set(ids) & set(await listed(world, TaskFilter(states=others), 4)), state
    everything = await listed(world, TaskFilter(states=tuple(ENDED)), 4)
    assert sorted(everything) == sorted(id for ids in ended.values() for id in ids)


async def test_held_ones_are_paged_newest_first(world: World) -> None:
    leases = [await world.lease() for _ in range(5)]
    held = TaskFilter(states=(TaskState.LEASED, TaskState.RUNNING, TaskState.CANCELLING))
    for limit in (1, 2, 5):
        assert await listed(world, held, limit) == [lease.hold.task_id for lease in leases[::-1]]


async def test_waiting_ones_are_paged_newest_first(world: World) -> None:
    delayed = [await world.submit(delay=60) for _ in range(3)]
    leases = [await world.lease() for _ in range(3)]
    await world.finish(*leases, settlement=retry_in(60))
    retrying = [lease.hold.task_id for lease in leases]
    both = TaskFilter(states=(TaskState.PENDING, TaskState.RETRYING))
    assert await listed(world, TaskFilter(states=(TaskState.PENDING,)), 2) == delayed[::-1]
    assert await listed(world, TaskFilter(states=(TaskState.RETRYING,)), 2) == retrying[::-1]
    assert await listed(world, both, 2) == [*retrying[::-1], *delayed[::-1]]


async def test_ends_of_one_instant_are_paged_without_gap_or_repeat(world: World) -> None:
    await submitted(world, 9)
    leases = await world.claim(9)
    await world.finish(*leases)
    ids = await listed(world, TaskFilter(states=(TaskState.SUCCEEDED,)), 2)
    assert sorted(ids) == sorted(lease.hold.task_id for lease in leases)


async def test_states_of_both_sorts_mix(world: World) -> None:
    first, second = await world.lease(), await world.lease()
    waiting = await world.submit()
    await world.finish(first)
    where = TaskFilter(states=(TaskState.SUCCEEDED, TaskState.QUEUED))
    assert await listed(world, where, 1) == [waiting, first.hold.task_id]
    assert await listed(world, TaskFilter(states=(TaskState.LEASED, TaskState.RUNNING)), 1) == [second.hold.task_id]


async def test_each_unfinished_state_can_be_asked_for(world: World) -> None:
    queued = await world.submit()
    pending = await world.submit(delay=60)
    held = [await world.claim_one()]
    held += [await world.lease(), await world.lease(), await world.lease()]
    await world.start(held[1])
    await world.cancel(held[2].hold.task_id)
    await world.finish(held[3], settlement=Settlement.retry(BOOM, 10))
    ids = [queued, pending, *(lease.hold.task_id for lease in held[1:])]
    states = [TaskState.LEASED, TaskState.PENDING, TaskState.RUNNING, TaskState.CANCELLING, TaskState.RETRYING]
    for id, state in zip(ids, states, strict=True):
        assert await listed(world, TaskFilter(states=(state,)), 10) == [id]
    assert await listed(world, TaskFilter(states=(TaskState.PENDING, TaskState.RETRYING)), 1) == [ids[4], ids[1]]
    assert await listed(world, TaskFilter(states=(TaskState.QUEUED,)), 10) == []


async def test_kinds_queues_and_labels(world: World) -> None:
    plain = await world.submit()
    other_kind = await world.submit(kind="other")
    other_queue = await world.submit(queue="slow")
    labelled = await world.submit(options='{"labels":{"team":"blue","tier":"1"}}')
    assert await listed(world, TaskFilter(kinds=("other",)), 1) == [other_kind]
    assert await listed(world, TaskFilter(queues=("slow",)), 1) == [other_queue]
    assert await listed(world, TaskFilter(kinds=("work",), queues=("default",)), 1) == [labelled, plain]
    assert await listed(world, TaskFilter(kinds=("unknown",)), 1) == []
    assert await listed(world, TaskFilter(labels=(("team", "blue"), ("tier", "1"))), 1) == [labelled]
    assert await listed(world, TaskFilter(labels=(("team", "blue"), ("tier", "2"))), 1) == []
    assert await listed(world, TaskFilter(labels=(("tier", "blue"),)), 1) == []
    assert await listed(world, TaskFilter(states=(TaskState.QUEUED,), labels=(("team", "blue"),)), 1) == [labelled]


async def test_reasons_and_dead_letters(world: World) -> None:
    leases = [await world.lease() for _ in range(3)]
    await world.finish(leases[0])
    await world.finish(leases[1], leases[2], settlement=FAILED)
    done, dead, seen = (lease.hold.task_id for lease in leases)
    await world.ledger.discard(ORGANIZATION, [seen], "bob")
    letters = (TaskState.DEAD_LETTERED,)
    assert await listed(world, TaskFilter(states=letters, discarded=False), 5) == [dead]
    assert await listed(world, TaskFilter(states=letters, discarded=True), 5) == [seen]
    assert await listed(world, TaskFilter(discarded=True), 5) == [seen]
    assert await listed(world, TaskFilter(discarded=False), 5) == [dead, done]
    assert await listed(world, TaskFilter(reasons=(Reason.OK,)), 5) == [done]
    assert await listed(world, TaskFilter(reasons=(Reason.EXHAUSTED,), states=letters, discarded=True), 5) == [seen]
    assert await listed(world, TaskFilter(reasons=(Reason.OK,), states=(TaskState.QUEUED,)), 5) == []


async def test_a_jobs_tasks(world: World) -> None:
    await world.submit()
    family = await world.submit_job({"a": [], "b": ["a"], "c": ["a"]})
    await world.submit()
    assert await listed(world, TaskFilter(job=family.id), 2) == [family["c"], family["b"], family["a"]]
    assert await listed(world, TaskFilter(job=family.id, states=(TaskState.QUEUED,)), 2) == [family["a"]]
    assert await listed(world, TaskFilter(job=family.id), 2, "other") == []
    assert await listed(world, TaskFilter(job=world.ids.new()), 2) == []
    row = (await world.views.tasks(ORGANIZATION, TaskFilter(job=family.id), 1)).rows[0]
    assert (row.job, row.name, row.waits) == (family.id, "c", 1)


async def test_other_organizations_stay_out_of_every_order(world: World) -> None:
    mine = await submitted(world, 3)
    theirs = await submitted(world, 4, organization="other")
    for states in ((), (TaskState.QUEUED,), tuple(UNFINISHED)):
        assert await listed(world, TaskFilter(states=states), 2) == mine
        assert await listed(world, TaskFilter(states=states), 2, "other") == theirs


async def test_a_filtered_page_looks_at_a_bounded_number_of_rows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LIST_SCAN_MAX_ROWS", 10)
    oldest = await world.submit(options='{"labels":{"team":"blue"}}')
    await submitted(world, 25)
    where = TaskFilter(labels=(("team", "blue"),))
    page = await world.views.tasks(ORGANIZATION, where, 5)
    assert page.rows == []
    assert page.cursor is not None
    assert await listed(world, where, 5) == [oldest]


async def test_tasks_that_come_while_paging_do_not_move_the_pages(world: World) -> None:
    newest_first = await submitted(world, 4)
    page = await world.views.tasks(ORGANIZATION, EVERYTHING, 2)
    await submitted(world, 3)
    rest = await world.views.tasks(ORGANIZATION, EVERYTHING, 5, page.cursor)
    assert [row.id for row in (*page.rows, *rest.rows)] == newest_first


@pytest.mark.parametrize("limit", [1, 2, 10])
async def test_what_ended_between_two_instants_comes_in_both_orders(world: World, limit: int) -> None:
    ended: list[tuple[str, int]] = []
    for _ in range(6):
        lease = await world.lease()
        await world.finish(lease)
        view = await world.views.task(ORGANIZATION, lease.hold.task_id)
        assert view is not None
        assert view.finished_us is not None
        ended.append((view.id, view.finished_us))
        world.advance(1)
    where = TaskFilter(ended_from_us=ended[1][1], ended_before_us=ended[4][1])
    between = [id for id, _ in ended[1:4]]
    assert await listed(world, where, limit) == between[::-1]


async def test_tasks_that_come_while_paging_oldest_first_are_on_the_last_page(world: World) -> None:
    newest_first = await submitted(world, 4)
    page = await world.views.tasks(ORGANIZATION, EVERYTHING, 2, sort=Sort.OLDEST)
    later = await submitted(world, 3)
    rest = await world.views.tasks(ORGANIZATION, EVERYTHING, 10, page.cursor, Sort.OLDEST)
    assert [row.id for row in (*page.rows, *rest.rows)] == [*newest_first[::-1], *later[::-1]]


async def test_a_cursor_serves_its_own_list_only(world: World) -> None:
    await submitted(world, 3)
    cursor = (await world.views.tasks(ORGANIZATION, EVERYTHING, 1)).cursor
    assert cursor is not None
    for where in (TaskFilter(kinds=("work",)), TaskFilter(states=(TaskState.QUEUED,))):
        with pytest.raises(Malformed):
            await world.views.tasks(ORGANIZATION, where, 1, cursor)
    with pytest.raises(Malformed):
        await world.views.tasks("other", EVERYTHING, 1, cursor)
    with pytest.raises(Malformed):
        await world.views.tasks(ORGANIZATION, EVERYTHING, 1, cursor, Sort.OLDEST)
    with pytest.raises(Malformed):
        await world.views.jobs(ORGANIZATION, (), 1, cursor)


@pytest.mark.parametrize(
    "cursor",
    ["", "x", "%%%", "é", "bnVsbA", "W10", "WzEsImFueSIsIiIsWyIiXV0", "WzEsImFueSJd", "A" * 10_000, "\x00"],
)
async def test_a_bad_cursor_is_malformed(world: World, cursor: str) -> None:
    with pytest.raises(Malformed):
        await world.views.tasks(ORGANIZATION, EVERYTHING, 1, cursor)
    with pytest.raises(Malformed):
        await world.views.jobs(ORGANIZATION, (), 1, cursor)


async def test_a_page_has_at_least_one_row_and_at_most_the_limit(world: World) -> None:
    with pytest.raises(Invalid):
        await world.views.tasks(ORGANIZATION, EVERYTHING, 0)
    await submitted(world, limits.LIST_MAX_ROWS + 1)
    page = await world.views.tasks(ORGANIZATION, EVERYTHING, 10**9)
    assert len(page.rows) == limits.LIST_MAX_ROWS
    assert page.cursor is not None


async def test_jobs_come_newest_first_and_by_state(world: World) -> None:
    await world.submit_job({"a": []}, organization="other", tasks={"a": {"kind": "other"}})
    families = [await world.submit_job({"a": []}) for _ in range(4)]
    leases = await world.claim(2)
    await world.finish(leases[0])
    ids = [family.id for family in families[::-1]]
    for sort, in_order in ((Sort.NEWEST, ids), (Sort.OLDEST, ids[::-1])):
        found, cursor = [], None
        while True:
            page = await world.views.jobs(ORGANIZATION, (), 3, cursor, sort)
            found += [row.id for row in page.rows]
            cursor = page.cursor
            if cursor is None:
                break
        assert found == in_order
    done = (await world.views.jobs(ORGANIZATION, (JobState.SUCCEEDED,), 5)).rows
    assert [row.id for row in done] == [families[0].id]
    some = (await world.views.jobs(ORGANIZATION, (JobState.PENDING, JobState.RUNNING), 5)).rows
    assert [row.id for row in some] == ids[:3]
    assert len((await world.views.jobs("other", (), 5)).rows) == 1


async def test_jobs_of_each_state_can_be_asked_for(world: World) -> None:
    found: dict[JobState, list[str]] = {state: [] for state in JobState}
    settlements = {
        JobState.SUCCEEDED: DONE,
        JobState.PARTIALLY_SUCCEEDED: PARTLY_DONE,
        JobState.FAILED: FAILED,
        JobState.CANCELLED: Settlement.gave_up("no"),
    }
    for _ in range(3):
        for state, settlement in settlements.items():
            family = await world.submit_job({"a": []})
            await world.run(family, "a", settlement=settlement)
            found[state].insert(0, family.id)
    for _ in range(3):
        found[JobState.RUNNING].insert(0, (await world.submit_job({"a": []})).id)
        await world.claim_one()
    for _ in range(3):
        found[JobState.PENDING].insert(0, (await world.submit_job({"a": []})).id)
    for state, ids in found.items():
        page = await world.views.jobs(ORGANIZATION, (state,), 2)
        rest = await world.views.jobs(ORGANIZATION, (state,), 2, page.cursor)
        assert [row.id for row in (*page.rows, *rest.rows)] == ids, state
        assert {row.state for row in page.rows} == {state}
        assert rest.cursor is None
