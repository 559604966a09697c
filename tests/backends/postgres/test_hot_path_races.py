"""The hot path with several transactions at once: each outcome is one that some order of them would have had."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

import psycopg
import pytest

from backends.postgres.crew import Writer, job, settlings
from perdure.domain.outcome import Failure
from perdure.domain.settlement import Settlement
from perdure.domain.states import TaskState
from perdure.store.ledger import SettleAnswer, Submitted
from perdure.store.postgres import settling, submission
from perdure.store.postgres.connecting import ISOLATIONS
from perdure.store.postgres.faults import RETRIED

WRITERS = 8
LATER = Settlement.retry(Failure("ValueError", "boom", None), 60_000_000)
BLOCKED = """
    SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock' AND state = 'active'
"""


@pytest.fixture(params=ISOLATIONS)
def writers(request: pytest.FixtureRequest, postgres_database: str) -> Iterator[list[Writer]]:
    """Eight sessions of one database, and a worker `w`."""
    made = [Writer(postgres_database, request.param) for _ in range(WRITERS)]
    made[0].register()
    yield made
    for writer in made:
        writer.close()


def retried(act: Callable[[], Any]) -> Any:
    """What a writer does with a collision: the whole transaction again."""
    while True:
        try:
            return act()
        except RETRIED:
            continue


def until_blocked(url: str) -> None:
    """Return once some transaction of the database waits for another."""
    with psycopg.connect(url, autocommit=True) as watcher:
        while watcher.execute(BLOCKED).fetchone() == (0,):
            threading.Event().wait(0.002)


def counts(writer: Writer) -> dict[tuple[int, str], int]:
    """The counters, folded or not."""
    rows = writer.session.connection.execute(
        "SELECT lane, state, sum(change)::bigint FROM (SELECT lane, state, count AS change FROM perdure_counts "
        "UNION ALL SELECT lane, state, change FROM perdure_count_changes) AS changes GROUP BY lane, state"
    ).fetchall()
    writer.session.connection.rollback()
    return {(lane, state): count for lane, state, count in rows if count}


def test_no_two_claims_get_the_same_task(writers: list[Writer]) -> None:
    writers[0].submit(writers[0].tasks(400))

    def drain(writer: Writer) -> list[str]:
        got: list[str] = []
        while leases := retried(lambda: writer.claim(7)):
            got += [lease.hold.task_id for lease in leases]
        return got

    with ThreadPoolExecutor(WRITERS) as pool:
        got = [id for part in pool.map(drain, writers) for id in part]
    rest = [lease.hold.task_id for lease in writers[0].claim(400)]
    assert len(set(got + rest)) == len(got + rest) == 400
    assert set(counts(writers[0]).values()) == {400}


def test_claims_of_one_worker_at_once_never_exceed_its_capacity(writers: list[Writer]) -> None:
    writers[0].register(capacity=25)
    writers[0].submit(writers[0].tasks(400))
    with ThreadPoolExecutor(WRITERS) as pool:
        claims = [pool.submit(retried, lambda writer=writer: writer.claim(10)) for writer in writers]
        sizes = [len(claim.result()) for claim in claims]
    assert sum(sizes) == 25, sizes
    assert retried(lambda: writers[0].claim(10)) == []


def test_a_claim_passes_over_what_another_has_locked(writers: list[Writer]) -> None:
    writers[0].register("v")
    writers[0].submit(writers[0].tasks(6))
    first = writers[0].begin()
    held = writers[0].claim_in(first, 4)
    beside = writers[1].claim(4, "v")
    try:
        writers[0].commit(first)
    except RETRIED:
        writers[0].session.roll_back()
        held = writers[0].claim(4)
    assert [len(held), len(beside)] == [4, 2]
    assert not {lease.hold.task_id for lease in held} & {lease.hold.task_id for lease in beside}


def test_where_several_lanes_compete_a_claim_looks_again_for_what_others_left(writers: list[Writer]) -> None:
    writers[0].register("v", kinds=("work", "more"))
    writers[0].register("w", kinds=("work", "more"))
    writers[0].submit(writers[0].tasks(1))
    writers[0].submit(writers[0].tasks(1, kind="more"))
    first = writers[0].begin()
    (older,) = writers[0].claim_in(first, 1)
    (newer,) = writers[1].claim(1, "v")
    writers[0].session.roll_back()
    assert (older.kind, newer.kind) == ("work", "more")


def test_a_child_of_two_parents_that_end_at_once_joins_its_lane_once(
    writers: list[Writer], postgres_database: str
) -> None:
    writers[0].submit_jobs([job(writers[0].ids, {"a": [], "b": [], "c": ["a", "b"]})])
    a, b = writers[0].claim(2)
    first = writers[0].begin()
    settling.settle(first, settlings([a]))
    with ThreadPoolExecutor(1) as pool:
        second: Future[Any] = pool.submit(retried, lambda: writers[1].settle(settlings([b])))
        until_blocked(postgres_database)
        writers[0].commit(first)
        assert second.result()[0].answer == SettleAnswer.APPLIED
    children = writers[0].claim(5)
    assert [lease.name for lease in children] == ["c"]
    assert writers[0].settle(settlings(children))[0].state == TaskState.SUCCEEDED
    jobs = writers[0].session.connection.execute("SELECT state, open, succeeded FROM perdure_jobs").fetchall()
    assert jobs == [("succeeded", 0, 3)]


def test_many_fan_ins_at_once_promote_every_child_once(writers: list[Writer]) -> None:
    graph = {**{f"p{n}": [] for n in range(4)}, **{f"c{n}": [f"p{m}" for m in range(4)] for n in range(5)}}
    writers[0].submit_jobs([job(writers[0].ids, graph) for _ in range(20)])
    parents = writers[0].claim(1_000)
    assert len(parents) == 80

    def settle(place: int) -> None:
        own = settlings(parents[place::WRITERS])
        for few in (own[start : start + 3] for start in range(0, len(own), 3)):
            retried(partial(writers[place].settle, few))

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(settle, range(WRITERS)))
    children = writers[0].claim(1_000)
    assert Counter(lease.name for lease in children) == {f"c{n}": 20 for n in range(5)}
    writers[0].settle(settlings(children))
    jobs = writers[0].session.connection.execute("SELECT DISTINCT state, open, succeeded FROM perdure_jobs").fetchall()
    assert jobs == [("succeeded", 0, 9)]
    assert {state: count for (_, state), count in counts(writers[0]).items()} == {"succeeded": 180, "attempts": 180}


@pytest.mark.parametrize(("digest", "answer"), [("d" * 32, SettleAnswer.REPLAYED), ("e" * 32, SettleAnswer.LEASE_LOST)])
def test_of_two_settles_of_one_attempt_at_once_one_applies(
    writers: list[Writer], postgres_database: str, digest: str, answer: SettleAnswer
) -> None:
    writers[0].submit(writers[0].tasks(1))
    leases = writers[0].claim(1)
    first = writers[0].begin()
    settling.settle(first, settlings(leases))
    with ThreadPoolExecutor(1) as pool:
        second: Future[Any] = pool.submit(retried, lambda: writers[1].settle(settlings(leases, LATER, digest)))
        until_blocked(postgres_database)
        writers[0].commit(first)
        assert second.result()[0].answer == answer
    assert {state: count for (_, state), count in counts(writers[0]).items()} == {"succeeded": 1, "attempts": 1}


def test_a_settle_that_waited_for_a_renewal_judges_by_what_the_renewal_wrote(
    writers: list[Writer], postgres_database: str
) -> None:
    writers[0].submit(writers[0].tasks(1))
    leases = writers[0].claim(1)
    first = writers[0].begin()
    first.connection.execute("UPDATE perdure_live SET token = 'another'")
    with ThreadPoolExecutor(1) as pool:
        second: Future[Any] = pool.submit(retried, lambda: writers[1].settle(settlings(leases)))
        until_blocked(postgres_database)
        writers[0].commit(first)
        assert second.result()[0].answer == SettleAnswer.LEASE_LOST


def test_an_attempt_that_fails_while_its_receipt_is_committed_ends_by_the_receipt(
    writers: list[Writer], postgres_database: str
) -> None:
    writers[0].submit(writers[0].tasks(1))
    leases = writers[0].claim(1)
    caller = writers[0].begin()
    caller.connection.execute("UPDATE perdure_live SET fence = fence")
    caller.connection.execute(
        "INSERT INTO perdure_receipts (n, attempt_id, partly, result, encoding, digest, written_us) "
        "SELECT n, attempt_id, false, '1', 'json', 'r', 0 FROM perdure_live"
    )
    with ThreadPoolExecutor(1) as pool:
        failing: Future[Any] = pool.submit(retried, lambda: writers[1].settle(settlings(leases, LATER)))
        until_blocked(postgres_database)
        writers[0].commit(caller)
        assert failing.result()[0].state == TaskState.SUCCEEDED


def test_the_same_task_submitted_twice_at_once_is_there_once(writers: list[Writer], postgres_database: str) -> None:
    tasks = writers[0].tasks(3)
    first = writers[0].begin()
    submission.submit(first, tasks[:2], writers[0].lanes)
    with ThreadPoolExecutor(1) as pool:
        second: Future[Any] = pool.submit(retried, lambda: writers[1].submit(tasks))
        until_blocked(postgres_database)
        writers[0].commit(first)
        assert [answer.replayed for answer in second.result()] == [True, True, False]
    assert {state: count for (_, state), count in counts(writers[0]).items()} == {"queued": 3}


def test_of_two_submits_with_one_key_at_once_the_second_is_a_replay(
    writers: list[Writer], postgres_database: str
) -> None:
    one, other = writers[0].tasks(2, idempotency_key="k", request_hash="h")
    first = writers[0].begin()
    submission.submit(first, [one], writers[0].lanes)
    with ThreadPoolExecutor(1) as pool:
        second: Future[Any] = pool.submit(retried, lambda: writers[1].submit([other]))
        until_blocked(postgres_database)
        writers[0].commit(first)
        assert second.result() == [Submitted(one.id, TaskState.QUEUED, True)]


def test_a_claim_and_a_settle_of_jobs_never_wait_for_each_other_in_a_circle(writers: list[Writer]) -> None:
    graph = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}
    writers[0].submit_jobs([job(writers[0].ids, graph) for _ in range(30)])
    deadlocks: list[BaseException] = []

    def work(writer: Writer) -> int:
        ended = idle = 0
        while idle < 20:
            try:
                leases = writer.claim(3)
                ended += len(writer.settle(settlings(leases))) if leases else 0
                idle = 0 if leases else idle + 1
            except psycopg.errors.DeadlockDetected as error:
                deadlocks.append(error)
            except RETRIED:
                pass
        return ended

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, writers[:4]))
    assert deadlocks == []
