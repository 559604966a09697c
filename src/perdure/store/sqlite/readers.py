"""Reading beside the writer: each question is one short transaction on a connection that cannot write.

Short, because the log cannot be emptied of what was written after the oldest snapshot in use. Most questions read a
bounded number of rows by an index. Those that read more (the parts of a task, the tasks of a job, the history of a task
with many attempts, a filtered list) are given up when they have taken too long.
"""

import asyncio
import os
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import apsw

from perdure.domain.limits import SECOND_US
from perdure.errors import Misuse, StoreBusy
from perdure.joining import join
from perdure.store.relational.finished import Answered
from perdure.store.sqlite.clock import StoreClock
from perdure.store.sqlite.faults import BROKEN, translate
from perdure.store.sqlite.forking import ForkGate
from perdure.store.sqlite.identity import FileIdentity
from perdure.store.sqlite.statements import STATEMENTS
from perdure.store.sqlite.transaction import Transaction

T = TypeVar("T")

READERS_MAX = 2
"""Threads that read. More only fight for the interpreter's lock."""
BACKLOG_MAX_QUESTIONS = 20_000
"""Questions are turned away while so many wait for their answer: some seconds of reading."""
RETRY_AFTER_SECONDS = 1.0
QUESTION_MAX_US = 5 * SECOND_US
"""The longest that the statements of one question may take."""
LOOK_EVERY_STEPS = 100_000
"""How many steps of SQLite's machine lie between two looks at the time: a few milliseconds."""

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


class Reader:
    """A connection that reads, opened when it is first needed. Of one thread."""

    def __init__(
        self,
        path: str,
        connect: Callable[[], apsw.Connection],
        clock: StoreClock,
        gate: ForkGate,
        identity: FileIdentity,
    ) -> None:
        self._path = path
        self._connect = connect
        self._clock = clock
        self._gate = gate
        self._identity = identity
        self._connection: apsw.Connection | None = None
        self._until_us = 0

    def answer(self, asked: Question) -> None:
        """Ask, and note the answer or the error."""
        now_us = self._clock.now_us()
        self._until_us = now_us + QUESTION_MAX_US
        try:
            self._identity.check_now_and_then(now_us)
            asked.answer = answer(self._connected(), now_us, asked.ask)
        except apsw.InterruptError:
            asked.error = StoreBusy(
                f"this question took longer than {QUESTION_MAX_US // SECOND_US} s and was given up, so that it does not"
                " stand in the way of those who write: ask for less at once, or when less is going on",
                retry_after=RETRY_AFTER_SECONDS,
            )
        except Exception as error:
            asked.error = translate(error, self._path)
            if isinstance(error, BROKEN):
                self.disconnect()

    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            self._gate.check()
            connection = self._connect()
            self._gate.admit(connection)
            connection.set_progress_handler(self._is_over, LOOK_EVERY_STEPS)
            self._connection = connection
        return self._connection

    def _is_over(self) -> bool:
        return self._clock.now_us() >= self._until_us

    def disconnect(self) -> None:
        """Let go of the connection. Harmless where there is none."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._gate.dismiss(connection)
            connection.close(True)


class Readers:
    """Threads with a read-only connection each, made when they are first needed."""

    def __init__(
        self,
        path: str,
        connect: Callable[[], apsw.Connection],
        clock: StoreClock,
        gate: ForkGate,
        identity: FileIdentity,
    ) -> None:
        self._path = path
        self._connect = connect
        self._clock = clock
        self._gate = gate
        self._identity = identity
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
        with self._guard:
            if self._waiting >= BACKLOG_MAX_QUESTIONS:
                raise StoreBusy(
                    f"{self._waiting} questions wait for their answer already; try again later",
                    retry_after=RETRY_AFTER_SECONDS,
                )
            asked = Question(question, asyncio.get_running_loop())
            self._waiting += 1
            if self._waiting > len(self._threads) < READERS_MAX:
                thread = threading.Thread(target=self._run, name="perdure-reader", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._questions.put(asked)
        return asked.future

    def _run(self) -> None:
        questions, turn = self._questions, self._gate.turn()
        reader = Reader(self._path, self._connect, self._clock, self._gate, self._identity)
        while (asked := questions.get()) is not None:
            # Nobody waits for the answer of a caller that was cancelled.
            if not asked.future.cancelled():
                with turn:
                    reader.answer(asked)
            with self._guard:
                self._waiting -= 1
            try:
                asked.loop.call_soon_threadsafe(asked.resolve)
            except RuntimeError:
                continue
            finally:
                del asked
        with turn:
            reader.disconnect()

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
