"""Steps of the schema: taken while others work, by several processes at once, each whole or not at all."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from backends.postgres.opened import one, opened, plain
from perdure.errors import StoreBusy
from perdure.store.postgres import schema, store
from perdure.store.postgres.schema import known_steps
from perdure.store.schema import Migration

if TYPE_CHECKING:
    from servers.databases import Databases

STEPS = known_steps()
NEXT = max(step.number for step in STEPS) + 1
WORKERS = 3
STALL_MAX_SECONDS = 20
PROCESSES = 4


@pytest.fixture
def blank(postgres_databases: "Databases") -> str:
    """A database without any schema."""
    return postgres_databases.server.url(postgres_databases.make("template1"))


def know(monkeypatch: pytest.MonkeyPatch, steps: list[Migration]) -> None:
    """Let there be these steps and no others."""
    monkeypatch.setattr(schema, "known_steps", lambda: steps)


def taken(url: str) -> list[int]:
    """The steps that a database took."""
    with plain(url) as admin:
        return [number for (number,) in admin.execute("SELECT number FROM perdure_migrations ORDER BY number")]


@contextmanager
def load(url: str) -> Iterator[list[int]]:
    """Sessions that go on writing to the tables of the first step, and read old snapshots; yields what each wrote."""
    stop, failed = threading.Event(), []
    rounds = [0] * WORKERS

    def work(number: int) -> None:
        try:
            with psycopg.connect(url, autocommit=True) as connection:
                while not stop.is_set():
                    _work_once(connection, f"{number}-{rounds[number]}")
                    rounds[number] += 1
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(WORKERS)]
    for thread in threads:
        thread.start()
    try:
        _until_all_have_gone_on(rounds, threads)
        yield rounds
        _until_all_have_gone_on(rounds, threads)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failed == []


def _work_once(connection: psycopg.Connection[Any], key: str) -> None:
    with connection.transaction():
        connection.execute("INSERT INTO perdure_idempotency VALUES ('o', 'p', 'task', %s, %s, 'h', 1)", [key, key])
        connection.execute("UPDATE perdure_meta SET value = %s WHERE key = 'losses_suspended_until_us'", ["0"])
    with connection.transaction():
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        connection.execute("SELECT count(*) FROM perdure_live JOIN perdure_tasks USING (n)")
        connection.execute("SELECT count(*) FROM perdure_lanes, perdure_definitions, perdure_jobs, perdure_ends")


def _until_all_have_gone_on(rounds: list[int], threads: list[threading.Thread]) -> None:
    before = list(rounds)
    for _ in range(STALL_MAX_SECONDS * 100):
        if all(now > then + 2 for now, then in zip(rounds, before, strict=True)):
            return
        assert all(thread.is_alive() for thread in threads)
        threading.Event().wait(0.01)
    raise AssertionError(f"somebody stands still: {before} and {rounds}")


@pytest.mark.parametrize("since", [step.number for step in STEPS])
async def test_a_database_of_each_step_is_brought_up_to_date_while_others_write(
    blank: str, since: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as old:
        know(old, [step for step in STEPS if step.number <= since])
        async with opened(blank, patience=0.1):
            pass
    assert max(taken(blank)) == since
    with load(blank) as rounds:
        async with opened(blank) as made:
            assert await made.schema.migrate() == []
            await made.ledger.now_us()
    assert taken(blank) == [step.number for step in STEPS]
    with plain(blank) as admin:
        assert one(admin, "SELECT count(*) FROM perdure_idempotency") == sum(rounds)


def test_processes_that_migrate_at_once_all_succeed_and_take_each_step_once(blank: str) -> None:
    command = [sys.executable, "-m", "perdure", "db", "migrate", "--store", blank]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(PROCESSES)]
    told = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [0] * PROCESSES
    assert taken(blank) == [step.number for step in STEPS]
    assert sum(text.count("took step 1 ") for text in told) >= 1


def _step(sql: str) -> list[Migration]:
    first = "CREATE TABLE perdure_of_this_step (n bigint);\n"
    return [*STEPS, Migration(NEXT, "next", first + sql)]


async def test_a_step_that_does_not_get_its_lock_is_undone_whole_and_taken_later(
    blank: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(blank):
        pass
    know(monkeypatch, _step("ALTER TABLE perdure_live ADD COLUMN of_this_step bigint"))
    with plain(blank) as holder, plain(blank) as other:
        holder.execute("BEGIN; SELECT count(*) FROM perdure_live")
        with pytest.raises(StoreBusy):
            async with opened(blank, lock_timeout=0.5):
                pass
        assert one(other, "SELECT to_regclass('perdure_of_this_step')::text") is None
        assert NEXT not in taken(blank)
        # Whoever reads was held up no longer than a turn, and is not now.
        other.execute("SET lock_timeout = '2s'; SELECT count(*) FROM perdure_live")
        holder.execute("COMMIT")
        async with opened(blank):
            pass
        assert taken(blank)[-1] == NEXT
        assert one(other, "SELECT count(of_this_step) FROM perdure_live") == 0


async def test_a_step_that_takes_too_long_is_undone_whole(blank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(blank):
        pass
    monkeypatch.setattr(store, "STATEMENT_TIMEOUT_MS", 200)
    know(monkeypatch, _step("SELECT pg_sleep(60)"))
    with pytest.raises(StoreBusy, match="in time"):
        async with opened(blank):
            pass
    assert NEXT not in taken(blank)
    with plain(blank) as admin:
        assert one(admin, "SELECT to_regclass('perdure_of_this_step')::text") is None
