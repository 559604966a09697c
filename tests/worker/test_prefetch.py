"""How many leases a worker has at hand: by how long handlers take, how soon tasks are gone, and how large they are."""

import asyncio

import pytest

from perdure.domain.limit import Limit
from perdure.domain.limits import SECOND_US
from perdure.worker.prefetch import AHEAD_BYTES, AHEAD_US, AHEAD_WAIT_MAX_US, WAIT_MAX_US, Prefetch
from perdure.worker.registry import Registry
from perdure.worker.worker_settings import WorkerSettings
from virtual_time import VirtualLoop
from worker.conftest import StartWorker, warm_up
from worker.scripted_source import ScriptedSource
from worker.test_leases import nap, now

SLOTS = 20
LEAST, MOST = 10, 3 * SLOTS


def learnt(
    *durations_us: int,
    each_us: int = 1,
    size: int = 50,
    prefetch: int | None = None,
    answer_us: int = 0,
    claims: int = 2,
) -> Prefetch:
    """After handlers that took so long, and claims with so long between them for each task, answered after so long."""
    prefetched = Prefetch(WorkerSettings(concurrency=SLOTS, prefetch=prefetch))
    for duration_us in durations_us:
        prefetched.note(duration_us, size)
    for number in range(claims):
        now_us = number * SLOTS * each_us
        prefetched.claimed(SLOTS, SLOTS, now_us - answer_us, now_us)
    return prefetched


def ahead(prefetch: Prefetch) -> int:
    """What may wait beside slots that are all taken."""
    return prefetch.room(SLOTS, SLOTS, 0)


def test_nothing_is_fetched_ahead_until_a_handler_has_ended() -> None:
    assert ahead(learnt()) == 0


@pytest.mark.parametrize(
    ("duration_us", "expected"),
    [(5, MOST), (1_000, MOST), (10_000, 2 * SLOTS), (100_000, LEAST), (SECOND_US - 1, LEAST), (SECOND_US, 0)],
)
def test_as_much_is_at_hand_as_the_slots_get_through_in_a_moment(duration_us: int, expected: int) -> None:
    assert ahead(learnt(duration_us)) == expected


@pytest.mark.parametrize(("prefetch", "expected"), [(None, 0), (5, 5)])
def test_nothing_is_fetched_ahead_where_starts_have_a_rate_unless_it_is_set(
    prefetch: int | None, expected: int
) -> None:
    learning = Prefetch(WorkerSettings(concurrency=SLOTS, prefetch=prefetch), at_rates=True)
    learning.note(5, 50)
    assert ahead(learning) == expected


async def _nothing() -> None: ...


def test_a_worker_knows_whether_one_of_its_kinds_starts_at_a_rate() -> None:
    registry = Registry()
    registry.add("plain", _nothing, limits=(Limit(concurrency=1),))
    assert not registry.starts_at_rates
    registry.add("rated", _nothing, limits=(Limit(rate=1, per=1),))
    assert registry.starts_at_rates


@pytest.mark.parametrize(
    ("each_us", "expected"), [(100, MOST), (250, MOST), (400, 30), (500, 20), (1_000, LEAST), (2_000, LEAST)]
)
def test_a_worker_that_is_slowed_down_leaves_more_to_others(each_us: int, expected: int) -> None:
    assert ahead(learnt(5, each_us=each_us)) == expected


def test_the_least_is_at_hand_until_two_claims_in_a_row_brought_all_that_was_wanted() -> None:
    prefetch = Prefetch(WorkerSettings(concurrency=SLOTS))
    prefetch.note(5, 50)
    prefetch.claimed(SLOTS, SLOTS, 0, 0)
    prefetch.claimed(SLOTS - 1, SLOTS, 100, 100)
    prefetch.claimed(SLOTS, SLOTS, SECOND_US, SECOND_US)
    assert ahead(prefetch) == LEAST
    prefetch.claimed(SLOTS, SLOTS, *[SECOND_US + SLOTS * 100] * 2)
    assert ahead(prefetch) == MOST


@pytest.mark.parametrize(
    ("answer_us", "expected"), [(0, 20), (1_000, 22), (10_000, 40), (AHEAD_US, 60), (SECOND_US, 60)]
)
def test_what_is_gone_before_a_claim_is_answered_is_asked_for_too(answer_us: int, expected: int) -> None:
    assert ahead(learnt(5, each_us=500, answer_us=answer_us, claims=30)) == expected


def test_a_claim_that_brought_less_says_nothing_of_how_long_one_takes() -> None:
    prefetch = learnt(5, each_us=500, claims=30)
    prefetch.claimed(SLOTS - 1, SLOTS, 0, SECOND_US)
    assert ahead(prefetch) == 20


def test_one_long_handler_among_short_ones_counts_for_a_while() -> None:
    prefetch = learnt(*[5] * 50, 500_000)
    assert ahead(prefetch) == LEAST
    for _ in range(1_000):
        prefetch.note(5, 50)
    assert ahead(prefetch) == MOST


def test_few_large_payloads_are_at_hand() -> None:
    assert ahead(learnt(*[5] * 100, size=AHEAD_BYTES // 20)) == pytest.approx(20, abs=1)
    assert ahead(learnt(*[5] * 100, size=AHEAD_BYTES)) == LEAST


@pytest.mark.parametrize("prefetch", [0, 5, 500])
def test_what_is_set_holds_for_all_short_handlers(prefetch: int) -> None:
    slow = learnt(900_000, each_us=45_000, prefetch=prefetch)
    assert ahead(learnt(5, prefetch=prefetch)) == ahead(slow) == prefetch


def test_no_claim_is_worth_it_while_half_of_what_may_wait_does() -> None:
    prefetch = learnt(5)
    assert prefetch.room(SLOTS, SLOTS, MOST // 2) == 0
    assert prefetch.room(SLOTS, SLOTS, MOST // 2 - 1) == MOST // 2 + 1


def test_handlers_that_never_wait_leave_slots_free_and_half_is_enough_for_them_too() -> None:
    prefetch = learnt(5)
    assert prefetch.room(SLOTS, 1, (SLOTS + MOST) // 2) == 0
    assert prefetch.room(SLOTS, 1, (SLOTS + MOST) // 2 - 1) == (SLOTS + MOST) // 2


@pytest.mark.parametrize("seconds", [0.001, 0.005, 0.05, 0.5])
async def test_nothing_waits_at_hand_for_longer_than_a_moment_and_one_handler(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker, seconds: float
) -> None:
    started: list[float] = []

    async def work() -> None:
        started.append(now())
        await asyncio.sleep(seconds)

    registry.add("work", work)
    leases = [source.offer("work") for _ in range(600)]
    start_worker(concurrency=SLOTS)
    await source.ended(leases[-1])
    claimed = [instant for instant, _, given in source.claims for _ in range(given)]
    waits = [begun - came for begun, came in zip(started, claimed, strict=True)]
    assert len(waits) == len(leases)
    assert max(waits) <= AHEAD_US / SECOND_US + seconds + 0.001


async def test_what_waits_unexpectedly_is_handed_back_after_a_moment_but_for_the_least(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    registry.add("nap", nap)
    worker = start_worker(concurrency=SLOTS)
    for _ in range(10):
        await warm_up(source, registry)
    short = [source.offer("nap", {"seconds": 0.001}) for _ in range(300)]
    await source.ended(short[-1])
    for _ in range(SLOTS + MOST):
        source.offer("nap", {"seconds": 100.0})
    await asyncio.sleep(0.05)
    assert worker.held > SLOTS + LEAST
    await asyncio.sleep(AHEAD_WAIT_MAX_US / SECOND_US)
    assert worker.held == SLOTS + LEAST
    await asyncio.sleep(WAIT_MAX_US / SECOND_US)
    assert worker.held == SLOTS


async def test_handlers_that_keep_the_loop_busy_have_few_at_hand(
    source: ScriptedSource, registry: Registry, start_worker: StartWorker
) -> None:
    """However many slots there are, such handlers run one after the other."""

    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)

    async def work() -> None:
        loop.jump(0.005)

    registry.add("work", work)
    leases = [source.offer("work") for _ in range(600)]
    start_worker(concurrency=SLOTS)
    await source.ended(leases[-1])
    assert max(given for _, _, given in source.claims) <= SLOTS + LEAST
