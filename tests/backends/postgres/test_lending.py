"""A lent connection has a thread to itself, and is taken back without holding the event loop up."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from perdure.store.postgres.lending import LentConnection, lend

WAIT = 30


@pytest.fixture
async def lent(postgres_database: str) -> AsyncIterator[LentConnection]:
    """A connection that somebody lends."""
    with psycopg.connect(postgres_database) as connection:
        yield LentConnection(connection)


async def test_a_lend_needs_no_thread_of_the_event_loops_pool(lent: LentConnection) -> None:
    free = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        occupied = asyncio.ensure_future(asyncio.to_thread(free.wait, WAIT))
        try:
            answer = await asyncio.wait_for(lend(lent, lambda own: own.ask(b"SELECT 1", {})), WAIT)
        finally:
            free.set()
        assert await occupied
    assert answer.rows == [(1,)]


async def test_who_is_cancelled_asks_the_server_off_the_event_loop_and_waits_for_that(
    lent: LentConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel, asked, done = psycopg.Connection.cancel_safe, [], []
    running = threading.Event()

    def watched(connection: psycopg.Connection[Any], *, timeout: float = WAIT) -> None:
        asked.append(threading.current_thread())
        cancel(connection, timeout=timeout)
        done.append(True)

    def act(own: LentConnection) -> None:
        running.set()
        own.ask(b"SELECT pg_sleep(3600)", {})

    monkeypatch.setattr(psycopg.Connection, "cancel_safe", watched)
    lending = asyncio.ensure_future(lend(lent, act))
    assert await asyncio.to_thread(running.wait, WAIT)
    lending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(lending), WAIT)
    assert asked
    assert len(done) == len(asked)
    assert threading.current_thread() not in asked
