"""A claim of a few commits by its own message, sent by its caller's loop, and only where all is as it was guessed."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

from backends.postgres.crew import ids, job, task
from backends.postgres.opened import end_sessions, one, opened, plain
from perdure.domain.attempt import Lease
from perdure.domain.limits import SECOND_US
from perdure.domain.states import JobState
from perdure.store.ledger import ClaimRequest, WorkerInfo, WorkerOrder
from perdure.store.postgres import claimed_rows, clock, folding
from perdure.store.postgres.session import Session
from perdure.store.postgres.store import PostgresStore
from perdure.store.postgres.wire import Answer, Query, Told, Wire
from perdure.store.relational.ledger import LONE_MAX_LEASES

IDS = ids()
WAIT = 30
LEASED = "SELECT count(*) FROM perdure_live WHERE state = 'leased'"
LOG = """
    CREATE TABLE seen (setting text);
    CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN INSERT INTO seen VALUES (current_setting('synchronous_commit')); RETURN new; END $$;
    CREATE TRIGGER note AFTER UPDATE ON perdure_live FOR EACH ROW EXECUTE FUNCTION note()
"""


class Sent:
    """The claims that were sent by themselves: whether each has leased what there was."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.allowed: list[bool] = []
        self.first = asyncio.Event()
        send = Session.send

        def watched(session: Session, statements: Sequence[Query], turn: Callable[[], str | None], told: Told) -> None:
            def noted(answers: list[Answer] | psycopg.Error) -> None:
                if statements[0][0].name == "claim_look":
                    good = isinstance(answers, list) and answers[0].rows and answers[0].rows[0][11] == "true"
                    needs_more = isinstance(answers, list) and any(row[0] is None for row in answers[1].rows or [])
                    self.allowed.append(bool(good) and not needs_more)
                told(answers)

            if statements[0][0].name == "claim_look":
                self.first.set()
            send(session, statements, turn, noted)

        patch.setattr(Session, "send", watched)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    # A busy machine may not leave the server's clock certain enough.
    monkeypatch.setattr(clock, "UNSURE_US", 10_000_000)
    return Sent(monkeypatch)


async def register(store: PostgresStore, capacity: int = 100) -> None:
    """A worker for the usual kind and queue."""
    await store.ledger.register(
        WorkerInfo("w", "w", "host", 1, "1", "build", ("work",), ("default",), (), (), capacity)
    )


def leases(count: int = 2) -> list[tuple[str, str]]:
    """Ids and tokens of new attempts."""
    return list(zip(IDS.some(count), IDS.tokens(count), strict=True))


async def claim(store: PostgresStore, wanted: Sequence[tuple[str, str]] | None = None) -> list[Lease]:
    """Claim a few tasks."""
    return await asyncio.wait_for(store.ledger.claim(ClaimRequest("w", wanted or leases())), WAIT)


async def submit(store: PostgresStore, *names: str, **given: Any) -> None:
    """Submit tasks together."""
    await store.ledger.submit([task(name, **given) for name in names])


def names(found: Sequence[Lease]) -> str:
    """What was leased, in order."""
    return "".join(each.hold.task_id for each in found)


@asynccontextmanager
async def ready(url: str, capacity: int = 100) -> AsyncIterator[PostgresStore]:
    """A store whose process has claimed once, the task `0`: it knows the worker and the lanes."""
    async with opened(url) as store:
        await register(store, capacity)
        await submit(store, "0")
        assert names(await claim(store, leases(1))) == "0"
        yield store


async def test_a_few_are_claimed_by_their_own_message(postgres_database: str, sent: Sent) -> None:
    async with ready(postgres_database) as store:
        await submit(store, *"abc")
        assert names(await claim(store)) == "ab"
        assert names(await claim(store)) == "c"
        assert await claim(store) == []
        assert sent.allowed == [True] * 3
        assert names(await claim(store, leases(LONE_MAX_LEASES + 1))) == ""
        assert len(sent.allowed) == 3, "one of many is left to the thread"
    with plain(postgres_database) as other:
        assert one(other, LEASED) == 4


async def test_nobody_waits_for_the_disk_and_what_follows_does(postgres_database: str, sent: Sent) -> None:
    async with ready(postgres_database) as store:
        with plain(postgres_database) as other:
            other.execute(LOG.encode())
            try:
                await submit(store, "a")
                await claim(store)
                assert sent.allowed == [True]
                assert one(other, "SELECT string_agg(setting, ' ') FROM seen") == "off"
            finally:
                other.execute("DROP FUNCTION note CASCADE; DROP TABLE seen")


async def test_a_claim_that_is_repeated_brings_the_same_leases(postgres_database: str, sent: Sent) -> None:
    async with ready(postgres_database) as store:
        await submit(store, *"ab")
        wanted = leases(1)
        first = await claim(store, wanted)
        again = await claim(store, wanted)
        assert [each.hold for each in again] == [each.hold for each in first]
        assert names(await claim(store)) == "b"


@pytest.mark.parametrize("change", ["capacity", "order", "lane", "due"])
async def test_what_is_not_as_it_was_is_left_to_a_transaction(postgres_database: str, sent: Sent, change: str) -> None:
    expected = {"capacity": "a", "order": "", "lane": "ab", "due": "ad"}
    async with ready(postgres_database) as store:
        if change == "lane":
            await submit(store, "a", priority=9)
            await submit(store, "b")
        elif change == "due":
            await submit(store, "d", delay_us=1)
            await submit(store, "a")
        else:
            await submit(store, *"ab")
        if change == "capacity":
            await store.ledger.heartbeat("w", 2)
        if change == "order":
            await store.ledger.order("default", "w", WorkerOrder.DRAIN, "bob")
        assert sorted(names(await claim(store))) == sorted(expected[change])
        assert sent.allowed == [False]


@pytest.mark.parametrize(
    "change",
    [
        """kinds = '["work", "more"]'""",
        """queues = '["default", "more"]'""",
        """organizations = '["default"]'""",
        """capabilities = '["gpu"]'""",
        "held_from = -1",
        "capacity = 99",
    ],
)
async def test_each_value_of_a_workers_row_is_compared(postgres_database: str, sent: Sent, change: str) -> None:
    async with ready(postgres_database) as store:
        await submit(store, "a")
        with plain(postgres_database) as other:
            other.execute(f"UPDATE perdure_workers SET {change}".encode())
        assert names(await claim(store)) == "a"
        assert sent.allowed == [False]


async def test_a_pause_is_seen_before_the_next_claim(postgres_database: str, sent: Sent) -> None:
    async with ready(postgres_database) as store:
        await submit(store, "a")
        await store.definitions.put("default", "queue", "default", '{"paused":true}', "bob")
        assert await claim(store) == []
        assert sent.allowed == [False]


async def test_what_is_past_its_time_to_live_is_ended_first(postgres_database: str, sent: Sent) -> None:
    async with ready(postgres_database) as store:
        await submit(store, "a", ttl_us=1)
        await submit(store, "b")
        assert names(await claim(store)) == "b"
        assert sent.allowed == [False]
        with plain(postgres_database) as other:
            assert one(other, "SELECT count(*) FROM perdure_ends WHERE state = 'expired'") == 1


async def test_a_worker_that_has_left_gets_nothing(postgres_database: str, sent: Sent) -> None:
    async with ready(postgres_database) as store:
        await submit(store, "a")
        await store.ledger.leave("w")
        assert await claim(store) == []
        assert sent.allowed == [False]
    with plain(postgres_database) as other:
        assert one(other, "SELECT count(*) FROM perdure_live WHERE state = 'queued'") >= 1


async def test_a_worker_gets_no_more_than_it_may_hold(postgres_database: str, sent: Sent) -> None:
    async with ready(postgres_database, capacity=3) as store:
        await submit(store, *"abcd")
        assert names(await claim(store, leases(4))) == "ab"
        assert await claim(store, leases(4)) == []
        assert sent.allowed == [True] * 2


async def test_a_job_begins_within_a_transaction(postgres_database: str, sent: Sent) -> None:
    async with ready(postgres_database) as store:
        made = job(IDS, {"first": [], "other": []})
        await store.ledger.submit_jobs([made])
        found = await claim(store, leases(1))
        assert [each.name for each in found] == ["first"]
        assert sent.allowed == [False]
        with plain(postgres_database) as other:
            assert one(other, "SELECT state FROM perdure_jobs") == JobState.RUNNING
    async with opened(postgres_database) as store:
        # A process that has refused nothing of late.
        await submit(store, "0b")
        await claim(store, leases(1))
        assert sent.allowed[1:] in ([], [True])


async def test_tasks_of_a_job_that_runs_are_claimed_by_their_own_message(postgres_database: str, sent: Sent) -> None:
    async with opened(postgres_database) as store:
        await register(store)
        await store.ledger.submit_jobs([job(IDS, {"first": [], "other": []})])
        assert [each.name for each in await claim(store, leases(1))] == ["first"]
        assert [each.name for each in await claim(store, leases(1))] == ["other"]
        assert sent.allowed == [True]


async def test_tasks_with_gates_are_claimed_within_a_transaction(postgres_database: str, sent: Sent) -> None:
    async with ready(postgres_database) as store:
        await submit(store, *"ab")
        with plain(postgres_database) as other:
            other.execute(
                "UPDATE perdure_live SET gated = 1 WHERE state = 'queued' AND seq = (SELECT max(seq) FROM perdure_live)"
            )
        assert names(await claim(store)) == "ab"
        assert sent.allowed == [False]


async def test_an_instant_that_the_server_does_not_have_is_none(
    postgres_database: str, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ready(postgres_database) as store:
        await submit(store, "a")
        monkeypatch.setattr(claimed_rows, "LATE_US", -claimed_rows.EARLY_US)
        assert names(await claim(store)) == "a"
        assert sent.allowed == [False]


async def test_statements_that_see_one_snapshot_are_no_way(postgres_database: str, sent: Sent) -> None:
    with plain(postgres_database) as other:
        database = f"ALTER DATABASE {other.info.dbname}"
        other.execute(f"{database} SET default_transaction_isolation = 'repeatable read'".encode())
        try:
            async with ready(postgres_database) as store:
                await submit(store, "a")
                assert names(await claim(store)) == "a"
        finally:
            other.execute(f"{database} RESET default_transaction_isolation".encode())
    assert sent.allowed == [False]


async def test_a_session_that_was_ended_is_noticed_and_the_claim_answered(postgres_database: str, sent: Sent) -> None:
    async with ready(postgres_database) as store:
        await submit(store, "a")
        assert end_sessions(postgres_database) >= 1
        assert names(await claim(store)) == "a"
        assert sent.allowed == [False]


async def test_an_answer_that_is_lost_is_asked_for_again(
    postgres_database: str, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = Wire.look

    def lose(wire: Wire) -> None:
        monkeypatch.setattr(Wire, "look", look)
        with plain(postgres_database) as other:
            while one(other, LEASED) != 2:
                pass
        wire.close()

    async with ready(postgres_database) as store:
        await submit(store, "a")
        monkeypatch.setattr(Wire, "look", lose)
        assert names(await claim(store)) == "a"
    with plain(postgres_database) as other:
        assert one(other, LEASED) == 2


async def test_a_worker_whose_row_is_locked_is_waited_for(postgres_database: str, sent: Sent) -> None:
    async with ready(postgres_database) as store:
        await submit(store, "a")
        with psycopg.connect(postgres_database) as other:
            other.execute("SELECT FROM perdure_workers FOR UPDATE")
            waiting = asyncio.ensure_future(claim(store))
            await sent.first.wait()
            assert await store.ledger.now_us() > 0
            other.rollback()
        assert names(await waiting) == "a"


async def test_a_store_without_lanes_is_looked_at_without_hurry(postgres_database: str, sent: Sent) -> None:
    async with opened(postgres_database) as store:
        await register(store)
        reminders: list[int] = []
        store.wakeups.remind = reminders.append  # type: ignore[method-assign]
        store.ledger = type(store.ledger)(store.writer, store.readers, reminders.append)
        for _ in range(5):
            assert await claim(store) == []
        assert sent.allowed == [True] * 4
        assert min(reminders) > 0


async def test_counts_are_folded_by_the_claim_after_the_next_one(
    postgres_database: str, sent: Sent, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ready(postgres_database) as store:
        monkeypatch.setattr(folding, "FOLD_EVERY_US", 0)
        monkeypatch.setattr(folding, "FOLD_AWAITED_US", -WAIT * SECOND_US)
        await submit(store, *"abc")
        assert names(await claim(store)) == "ab"
        assert sent.allowed == [True], "nobody waits for a fold"
        assert names(await claim(store)) == "c"
        assert sent.allowed == [True]
        with plain(postgres_database) as other:
            assert one(other, "SELECT count(*) FROM perdure_count_changes") <= 2
        assert await claim(store) == []
        assert sent.allowed == [True] * 2
