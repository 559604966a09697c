"""A caller's connection while the store writes through it.

Its session stays as it is: the cursors are the store's own, and no statement is prepared on the server. What the server
reports about the caller's transaction is the caller's to handle, so it comes as the driver raises it.
"""

import asyncio
import concurrent.futures
import contextlib
import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from perdure.store.postgres.wire import Answer, Query

T = TypeVar("T")

ABANDON_SECONDS = 5.0
"""How long a request to cut a statement short may take, and how soon it is made again while the statement goes on."""


class Abandoned(Exception):
    """Whoever lent the connection was cancelled, and takes it back."""


class LentConnection:
    """A connection of psycopg, used on one thread at a time. `Transaction` takes it for its connection."""

    def __init__(self, connection: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
        self._connection: Any = connection
        self._abandoned = False

    @property
    def autocommit(self) -> bool:
        """Whether each statement commits by itself outside of a transaction."""
        return bool(self._connection.autocommit)

    @property
    def closed(self) -> bool:
        """Whether nothing more can be asked of it."""
        return bool(self._connection.closed)

    @property
    def status(self) -> TransactionStatus:
        """How its transaction stands."""
        return TransactionStatus(self._connection.info.transaction_status)

    def run_together(self, queries: Sequence[Query]) -> list[Answer]:
        """Run statements, one after the other."""
        return [self.ask(each.text, dict(zip(each.names, values, strict=True))) for each, values in queries]

    def ask(self, text: bytes, bindings: Any) -> Answer:
        """Run one statement."""
        if self._abandoned:
            raise Abandoned
        cursor = psycopg.Cursor(self._connection, row_factory=tuple_row)
        cursor.execute(text, bindings, prepare=False, binary=True)
        rows = cursor.fetchall() if cursor.description is not None else None
        return Answer(rows, (cursor.statusmessage or "").encode(), cursor.rowcount)

    def abandon(self, acting: "Future[Any]") -> "Future[Any]":
        """Run nothing more, and cut short what `acting` runs: what is returned is done when no request is under way."""
        self._abandoned = True
        return _beside(lambda: self._cut_short(acting))

    def _cut_short(self, acting: "Future[Any]") -> None:
        """Ask the server until nothing runs: a request may come before the statement does, or be lost."""
        while not acting.done():
            with contextlib.suppress(psycopg.Error):
                self._connection.cancel_safe(timeout=ABANDON_SECONDS)
            concurrent.futures.wait([acting], ABANDON_SECONDS)


class AwaitedConnection(LentConnection):
    """A connection that is awaited on its event loop, while the transaction is on another thread."""

    def __init__(self, connection: psycopg.AsyncConnection[Any], loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(connection)
        self._loop = loop
        self._running: asyncio.Task[Answer] | None = None

    def ask(self, text: bytes, bindings: Any) -> Answer:
        """Run one statement on the loop."""
        answered: Future[Answer] = Future()
        self._loop.call_soon_threadsafe(self._start, text, bindings, answered)
        return answered.result()

    def _start(self, text: bytes, bindings: Any, answered: "Future[Answer]") -> None:
        if self._abandoned:
            answered.set_exception(Abandoned())
            return
        self._running = self._loop.create_task(self._ask(text, bindings))
        self._running.add_done_callback(lambda done: _deliver(done, answered))

    async def _ask(self, text: bytes, bindings: Any) -> Answer:
        cursor = psycopg.AsyncCursor(self._connection, row_factory=tuple_row)
        await cursor.execute(text, bindings, prepare=False, binary=True)
        rows = await cursor.fetchall() if cursor.description is not None else None
        return Answer(rows, (cursor.statusmessage or "").encode(), cursor.rowcount)

    def abandon(self, acting: "Future[Any]") -> "Future[Any]":
        """Run nothing more, and cut short what runs. On the loop, where the driver waits without holding it up."""
        self._abandoned = True
        if self._running is not None:
            self._running.cancel()
        return acting


def _deliver(done: "asyncio.Task[Answer]", answered: "Future[Answer]") -> None:
    error = Abandoned() if done.cancelled() else done.exception()
    if error is not None:
        answered.set_exception(error)
    else:
        answered.set_result(done.result())


async def lend(lent: LentConnection, act: Callable[[LentConnection], T]) -> T:
    """Call `act` with the connection on a thread beside, and wait for it, so that the event loop goes on.

    The thread is its own: it may wait for a lock for as long as the caller's `lock_timeout` lets it, and whoever holds
    that lock may need a thread to let go of it.

    Whoever is cancelled meanwhile is so only once nothing is run on the connection any more: what came after a rollback
    would be in a transaction of its own.
    """
    acting = _beside(lambda: act(lent))
    acted = asyncio.wrap_future(acting)
    try:
        return await asyncio.shield(acted)
    except asyncio.CancelledError:
        ends = [acted, asyncio.wrap_future(lent.abandon(acting))]
        while not all(end.done() for end in ends):
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait(ends)
        for end in ends:
            end.exception()
        raise


def _beside(act: Callable[[], T]) -> "Future[T]":
    """Call `act` on a thread of its own, in the caller's context."""
    acting: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            result = context.run(act)
        except BaseException as error:
            acting.set_exception(error)
        else:
            acting.set_result(result)

    threading.Thread(target=run, name="perdure-lent", daemon=True).start()
    return acting
