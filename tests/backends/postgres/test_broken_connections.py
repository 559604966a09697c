"""Connections that break, servers that go away, transactions that collide: answers come, or a clear error in time."""

import asyncio
import signal
import threading
from collections.abc import Awaitable, Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from psycopg import errors

from backends.postgres.opened import end_sessions, one, opened, operation, plain
from perdure.errors import Invalid, StoreBusy, StoreUnreachable
from perdure.store.postgres.held_up import TURNS_MAX
from perdure.store.postgres.lifeline import RETRIES_MAX
from perdure.store.postgres.session import Session
from perdure.store.postgres.store import LOCK_TIMEOUT
from perdure.store.relational import definitions
from perdure.store.relational.operation import Operation

if TYPE_CHECKING:
    from servers.postgres import PostgresServer

NOTHING = operation(lambda tx, items: items)
WAIT = 30


@pytest.fixture(scope="module")
def server() -> Iterator["PostgresServer"]:
    """A server that a test may stop."""
    from servers.postgres import NoServer, running
    from skipping import skip

    try:
        with running() as server:
            yield server
    except NoServer as reason:
        skip(str(reason))


async def test_sessions_that_were_ended_between_calls_are_opened_anew(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        first = await store.definitions.put("default", "queue", "q", "{}", "bob")
        await store.ledger.now_us()
        assert end_sessions(postgres_database) >= 1
        changed = await store.definitions.put("default", "queue", "q", '{"depth":1}', "bob")
        assert changed.version == first.version + 1
        assert await store.ledger.now_us() > 0


async def test_a_session_that_is_ended_in_the_middle_costs_a_second_run_and_no_answer(postgres_database: str) -> None:
    runs: list[int] = []

    def apply(tx: Any, items: list[Any]) -> list[Any]:
        runs.append(len(items))
        tx.run("server_note", start_us=len(runs), noted=None)
        if len(runs) == 1:
            end_sessions(postgres_database)
        tx.value("server_noted")
        return items

    async with opened(postgres_database) as store:
        assert await store.writer.gather(operation(apply), ["a", "b"]) == ["a", "b"]
    assert runs == [2, 2]


async def test_a_commit_without_an_answer_is_sent_again_and_done_once(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = Session.commit
    lost: list[str] = []

    def lose_the_first(session: Session, hint: str | None = None) -> None:
        commit(session, hint)
        if not lost:
            lost.append("answer")
            session.close()
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    async with opened(postgres_database) as store:
        monkeypatch.setattr(Session, "commit", lose_the_first)
        put = await store.definitions.put("default", "queue", "q", "{}", "bob")
        assert lost == ["answer"]
        assert await store.definitions.list("default", "queue") == [put]
        with plain(postgres_database) as other:
            # Written twice, it would be one version further than the instant with which it began.
            assert one(other, "SELECT version - updated_us FROM perdure_definitions WHERE name = 'q'") == 0


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("scheme", ["postgresql", "cockroachdb"])
async def test_a_commit_whose_outcome_the_server_does_not_know_is_sent_again_and_done_once(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch, scheme: str, done: bool
) -> None:
    commit = Session.commit
    doubtful: list[Session] = []

    def doubt_the_first(session: Session, hint: str | None = None) -> None:
        if doubtful:
            return commit(session, hint)
        doubtful.append(session)
        if done:
            commit(session, hint)
        raise errors.StatementCompletionUnknown("result is ambiguous: nobody knows whether it was committed")

    async with opened(postgres_database.replace("postgresql", scheme)) as store:
        monkeypatch.setattr(Session, "commit", doubt_the_first)
        put = await store.definitions.put("default", "queue", "q", "{}", "bob")
        assert doubtful
        assert await store.definitions.list("default", "queue") == [put]
        with plain(postgres_database) as other:
            assert one(other, "SELECT version - updated_us FROM perdure_definitions WHERE name = 'q'") == 0


async def test_a_call_waits_for_a_server_that_is_started_again(server: "PostgresServer") -> None:
    async with opened(server.url("postgres"), patience=WAIT) as store:
        first = await store.definitions.put("default", "queue", "q", "{}", "bob")
        server.stop(signal.SIGQUIT)
        put = asyncio.ensure_future(store.definitions.put("default", "queue", "q", '{"depth":1}', "bob"))
        read = asyncio.ensure_future(store.ledger.now_us())
        server.start()
        assert (await put).version == first.version + 1
        assert await read > 0


async def test_a_server_that_stays_away_is_told_of_once_in_time_and_then_at_once(server: "PostgresServer") -> None:
    async with opened(server.url("postgres"), patience=0.2) as store:
        await store.writer.gather(NOTHING, [1])
        server.stop(signal.SIGINT)
        try:
            for _ in range(2):
                with pytest.raises(StoreUnreachable):
                    await asyncio.wait_for(store.writer.gather(NOTHING, [1]), WAIT)
        finally:
            server.start()
        assert await store.writer.gather(NOTHING, [1]) == [1]


async def test_closing_does_not_wait_for_a_server_that_is_away(server: "PostgresServer") -> None:
    async with opened(server.url("postgres"), patience=3600) as store:
        await store.writer.gather(NOTHING, [1])
        server.stop(signal.SIGINT)
        try:
            waiting = asyncio.ensure_future(store.writer.gather(NOTHING, [1]))
            await asyncio.sleep(0)
            await asyncio.wait_for(store.close(), WAIT)
            with pytest.raises(StoreUnreachable):
                await waiting
        finally:
            server.start()


async def test_a_lock_that_is_not_had_in_time_makes_the_store_busy(postgres_database: str) -> None:
    async with opened(postgres_database, lock_timeout=0.05) as store:
        with plain(postgres_database) as holder:
            holder.execute("BEGIN; LOCK TABLE perdure_definitions")
            with pytest.raises(StoreBusy, match="left open"):
                await store.definitions.put("default", "queue", "q", "{}", "bob")


async def test_what_needs_a_lock_that_is_held_waits_for_it_and_holds_up_nobody_else(postgres_database: str) -> None:
    """Calls that gather behind one another, of which one needs a row that somebody else has."""

    def apply(tx: Any, items: list[Any]) -> list[Any]:
        for name in items:
            tx.connection.execute("INSERT INTO perdure_meta (key, value) VALUES (%s, '')", [name])
        return items

    insert, waiting = operation(apply), []
    async with opened(postgres_database) as store:
        gather = store.writer.gather
        with plain(postgres_database) as holder:
            holder.execute("BEGIN; INSERT INTO perdure_meta (key, value) VALUES ('held', '')")
            waiting = [asyncio.ensure_future(_of(gather(insert, [name]))) for name in ("a", "held", "b", "c")]
            others = [each for n, each in enumerate(waiting) if n != 1]
            assert await asyncio.wait_for(asyncio.gather(*others), LOCK_TIMEOUT / 2) == [["a"], ["b"], ["c"]]
            assert await asyncio.wait_for(_of(gather(insert, ["later"])), LOCK_TIMEOUT / 2) == ["later"]
            assert not waiting[1].done()
            holder.execute("ROLLBACK")
        assert await waiting[1] == ["held"]


async def test_where_all_of_a_flush_needs_what_is_held_nobody_asks_for_each(postgres_database: str) -> None:
    runs: list[int] = []

    def apply(tx: Any, items: list[Any]) -> list[Any]:
        runs.append(len(items))
        tx.connection.execute("LOCK TABLE perdure_meta IN SHARE MODE")
        return items

    lock = operation(apply)
    async with opened(postgres_database, lock_timeout=0.5) as store:
        with plain(postgres_database) as holder:
            holder.execute("BEGIN; INSERT INTO perdure_meta (key, value) VALUES ('held', '')")
            waiting = [store.writer.gather(lock, [n]) for n in range(500)]
            answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert {type(answer) for answer in answers} == {StoreBusy}
    assert len(runs) <= 4 * TURNS_MAX


async def _of(answer: Awaitable[list[Any]]) -> list[Any]:
    return await answer


async def test_collisions_are_run_again_and_never_for_ever(postgres_database: str) -> None:
    runs: list[int] = []

    def collide(times: int) -> Operation:
        def apply(tx: Any, items: list[Any]) -> list[Any]:
            runs.append(1)
            if len(runs) <= times:
                raise errors.SerializationFailure("could not serialize access")
            return items

        return operation(apply)

    async with opened(postgres_database) as store:
        assert await store.writer.gather(collide(3), ["a"]) == ["a"]
        assert len(runs) == 4
        runs.clear()
        with pytest.raises(StoreBusy, match="smaller batches"):
            await store.writer.gather(collide(1_000), ["a"])
        assert len(runs) == RETRIES_MAX + 1


async def test_a_session_whose_server_became_a_standby_is_left_for_another(postgres_database: str) -> None:
    sessions: list[int] = []

    def apply(tx: Any, items: list[Any]) -> list[Any]:
        sessions.append(tx.connection.info.backend_pid)
        if len(sessions) == 1:
            raise errors.ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction")
        return items

    async with opened(postgres_database) as store:
        assert await store.writer.gather(operation(apply), ["a"]) == ["a"]
    assert len(set(sessions)) == 2


async def test_statements_that_were_prepared_for_an_older_schema_are_prepared_anew(postgres_database: str) -> None:
    async with opened(postgres_database) as store:
        look = operation(lambda tx, items: [tx.connection.execute("SELECT * FROM mine", prepare=True).fetchall()])
        with plain(postgres_database) as other:
            other.execute("CREATE TABLE mine (a int)")
            await store.writer.gather(look, [1])
            other.execute("ALTER TABLE mine ALTER COLUMN a TYPE text")
        assert await store.writer.gather(look, [1]) == [[]]


async def test_a_value_that_the_server_refuses_costs_nobody_else_anything(postgres_database: str) -> None:
    def apply(tx: Any, items: list[Any]) -> list[Any]:
        return [one(tx.connection, "SELECT %s::int", item) for item in items]

    numbers = operation(apply)
    async with opened(postgres_database) as store:
        calls = [store.writer.gather(numbers, items) for items in (["1", "2"], ["x"], ["3", "y", "5"])]
        answers = await asyncio.gather(*calls, return_exceptions=True)
    assert answers[0] == [1, 2]
    assert isinstance(answers[1], Invalid)
    three, bad, five = answers[2]  # type: ignore[misc]
    assert (three, five) == (3, 5)
    assert isinstance(bad, Invalid)


async def test_renewals_and_claims_do_not_wait_behind_a_write(postgres_database: str) -> None:
    begun, free = threading.Event(), threading.Event()

    def hold_up(tx: Any, items: list[Any]) -> list[Any]:
        begun.set()
        assert free.wait(WAIT)
        return items

    async with opened(postgres_database) as store:
        held_up = store.writer.gather(operation(hold_up), [1])
        assert await asyncio.to_thread(begun.wait, WAIT)
        assert await asyncio.wait_for(store.ledger.renew([]), WAIT) == []
        for name in ("renew", "note", "claim", "act"):
            beside = operation(lambda tx, items: items, name)
            assert await asyncio.wait_for(store.writer.gather(beside, [name]), WAIT) == [name]
        free.set()
        assert await held_up == [1]


async def test_what_gathers_while_a_flush_is_under_way_travels_together(postgres_database: str) -> None:
    sizes: list[int] = []
    begun, free = threading.Event(), threading.Event()

    def apply(tx: Any, items: list[Any]) -> list[Any]:
        sizes.append(len(items))
        begun.set()
        assert free.wait(WAIT)
        return items

    counting = operation(apply)
    async with opened(postgres_database) as store:
        first = store.writer.gather(counting, [0])
        assert await asyncio.to_thread(begun.wait, WAIT)
        others = [store.writer.gather(counting, [n]) for n in range(1, 6)]
        free.set()
        assert await asyncio.gather(first, *others) == [[n] for n in range(6)]
    assert sizes == [1, 5]


async def test_what_was_begun_is_undone_also_when_the_program_is_interrupted(postgres_database: str) -> None:
    class Interrupted(BaseException):
        pass

    def interrupt(tx: Any, items: list[Any]) -> list[Any]:
        tx.connection.execute("CREATE TABLE half_done ()")
        raise Interrupted

    async with opened(postgres_database, inline=True) as store:
        with pytest.raises(Interrupted):
            store.writer.gather(operation(interrupt), [1])
        assert await store.writer.gather(NOTHING, [1]) == [1]
        with plain(postgres_database) as other:
            assert one(other, "SELECT to_regclass('half_done')") is None


def test_a_put_that_others_are_always_ahead_of_is_given_up() -> None:
    rounds: list[str] = []

    class Overtaken:
        """Somebody else's version is there by the time that one is written."""

        def run(self, name: str, /, **bindings: Any) -> list[Any]:
            return []

        def value(self, name: str, /, **bindings: Any) -> None:
            rounds.append(name)

    put = definitions.Put("default", "queue", "q", "{}", "bob", None)
    (answer,) = definitions.PUT.apply(Overtaken(), [put])
    assert isinstance(answer, StoreBusy)
    assert rounds == ["definition_put"] * definitions.ROUNDS_MAX
