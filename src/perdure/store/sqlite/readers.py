"""Reading beside the writer: each question is one short transaction on a connection that cannot write."""

import asyncio
import os
import queue
import threading
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar

import apsw

from perdure.errors import Misuse
from perdure.joining import join
from perdure.store.sqlite.clock import StoreClock
from perdure.store.sqlite.faults import BROKEN, translate
from perdure.store.sqlite.forking import ForkGate
from perdure.store.sqlite.statements import STATEMENTS
from perdure.store.sqlite.transaction import Transaction

T = TypeVar("T")

READERS_MAX = 2
"""Threads that read. More only fight for the interpreter's lock."""

_BEGIN = STATEMENTS["transaction_begin_read"]
_ROLLBACK = STATEMENTS["transaction_rollback"]


class Question:
    """A question, who asked, and the answer."""

    __slots__ = ("answer", "ask", "error", "future", "loop")

    def __init__(self, ask: Callable[[Transaction], Any], loop: asyncio.AbstractEventLoop) -> None:
        self.ask = ask
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.answer: Any = None
        self.error: BaseException | None = None

    def resolve(self) -> None:
        """Hand the answer to who asked. Only on that loop."""
        if self.future.done():
            return
        if self.error is not None:
            self.future.set_exception(self.error)
        else:
            self.future.set_result(self.answer)


def answer(connection: apsw.Connection, now_us: int, ask: Callable[[Transaction], T]) -> T:
    """Ask within one snapshot."""
    connection.execute(_BEGIN)
    try:
        return ask(Transaction(connection, now_us))
    finally:
        if connection.in_transaction:
            connection.execute(_ROLLBACK)


class Readers:
    """Threads with a read-only connection each, made when they are first needed."""

    def __init__(self, path: str, connect: Callable[[], apsw.Connection], clock: StoreClock, gate: ForkGate) -> None:
        self._path = path
        self._connect = connect
        self._clock = clock
        self._gate = gate
        self._closed = False
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._questions: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._waiting = 0
        self._guard = threading.Lock()

    def read(self, question: Callable[[Transaction], T]) -> Awaitable[T]:
        """Answer `question` from one snapshot, off the event loop. Raises what it raises, or `Unavailable`."""
        if self._closed:
            raise Misuse("the store is closed; open it again before using it")
        if self._pid != os.getpid():
            self._start()
        asked = Question(question, asyncio.get_running_loop())
        with self._guard:
            self._waiting += 1
            if self._waiting > len(self._threads) < READERS_MAX:
                thread = threading.Thread(target=self._run, name="perdure-reader", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._questions.put(asked)
        return asked.future

    def _run(self) -> None:
        questions, turn = self._questions, self._gate.turn()
        connection: apsw.Connection | None = None
        while (asked := questions.get()) is not None:
            # Nobody waits for the answer of a caller that was cancelled.
            if not asked.future.cancelled():
                with turn:
                    connection = self._answer(asked, connection)
            with self._guard:
                self._waiting -= 1
            try:
                asked.loop.call_soon_threadsafe(asked.resolve)
            except RuntimeError:
                continue
            finally:
                del asked
        if connection is not None:
            with turn:
                self._disconnect(connection)

    def _answer(self, asked: Question, connection: apsw.Connection | None) -> apsw.Connection | None:
        try:
            if connection is None:
                self._gate.check()
                connection = self._connect()
                self._gate.admit(connection)
            asked.answer = answer(connection, self._clock.now_us(), asked.ask)
        except Exception as error:
            asked.error = translate(error, self._path)
            if isinstance(error, BROKEN) and connection is not None:
                self._disconnect(connection)
                return None
        return connection

    def _disconnect(self, connection: apsw.Connection) -> None:
        self._gate.dismiss(connection)
        connection.close(True)

    async def close(self) -> None:
        """Answer what was asked, then end the threads. Harmless when closed already, and in a forked child."""
        if self._closed:
            return
        self._closed = True
        if self._pid != os.getpid():
            return
        for _ in self._threads:
            self._questions.put(None)
        for thread in self._threads:
            await join(thread)


class Answered:
    """An awaitable that is over already."""

    __slots__ = ("_answer",)

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def __await__(self) -> Generator[Any, None, Any]:
        return self._answer
        yield


class InlineReaders(Readers):
    """Answers at once, on the connection that writes."""

    def __init__(self, path: str, connection: Callable[[], apsw.Connection], clock: StoreClock) -> None:
        self._path = path
        self._connection = connection
        self._clock = clock
        self._closed = False

    def read(self, question: Callable[[Transaction], T]) -> Awaitable[T]:
        """Answer now."""
        if self._closed:
            raise Misuse("the store is closed; open it again before using it")
        try:
            return Answered(answer(self._connection(), self._clock.now_us(), question))
        except apsw.Error as error:
            raise translate(error, self._path) from error

    async def close(self) -> None:
        """Answer no more."""
        self._closed = True
