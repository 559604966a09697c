"""Reading beside the writers: each question is one transaction that reads one snapshot and cannot write.

A short one, because the server cannot clean up what was written after the oldest snapshot in use: a statement that has
taken too long is given up.
"""

import asyncio
import queue
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from perdure.errors import Misuse, StoreBusy
from perdure.joining import join
from perdure.store.postgres.clock import StoreClock
from perdure.store.postgres.faults import translate
from perdure.store.postgres.forking import Inheritance
from perdure.store.postgres.lifeline import Lifeline
from perdure.store.postgres.session import Session
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.finished import Answered

T = TypeVar("T")

READERS_MAX = 2
"""Threads that read, each with a connection. More only fight for the interpreter's lock."""
BACKLOG_MAX_QUESTIONS = 20_000
"""Questions are turned away while so many wait for their answer: some seconds of reading."""


class Asking:
    """Asks within one snapshot each."""

    def __init__(self, lifeline: Lifeline, clock: StoreClock, place: str) -> None:
        self.lifeline = lifeline
        self._clock = clock
        self.place = place

    def ask(self, question: Callable[[Transaction], T]) -> T:
        """The answer. Raises what the question raises, or one of `Unavailable`."""

        def run(session: Session) -> T:
            try:
                now_us = self._clock.now_us(session.begin_reading())
                return question(Transaction(session.connection, now_us, session.wire, dialect=session.dialect))
            finally:
                session.roll_back()

        try:
            return self.lifeline.run(run)
        except Exception as error:
            translated = translate(error, self.place)
            if translated is error:
                raise
            raise translated from error


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


class Readers:
    """Threads with a connection each, made when they are first needed."""

    def __init__(self, asking: Callable[[], Asking], inheritance: Inheritance) -> None:
        self._asking = asking
        self._closed = False
        self._start_over()
        inheritance.in_child(self._start_over)

    def _start_over(self) -> None:
        self._questions: queue.SimpleQueue[Question | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._waiting = 0
        self._guard = threading.Lock()

    def read(self, question: Callable[[Transaction], T]) -> Awaitable[T]:
        """Answer `question` from one snapshot, off the event loop. Raises what it raises, or `Unavailable`."""
        if self._closed:
            raise Misuse("the store is closed; open it again before using it")
        with self._guard:
            if self._waiting >= BACKLOG_MAX_QUESTIONS:
                raise StoreBusy(
                    f"{self._waiting} questions wait for their answer already; try again later", retry_after=1.0
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
        questions, asking = self._questions, self._asking()
        while (asked := questions.get()) is not None:
            # Nobody waits for the answer of a caller that was cancelled.
            if not asked.future.cancelled():
                try:
                    asked.answer = asking.ask(asked.ask)
                except Exception as error:
                    asked.error = error
            with self._guard:
                self._waiting -= 1
            try:
                asked.loop.call_soon_threadsafe(asked.resolve)
            except RuntimeError:
                continue
            finally:
                del asked
        asking.lifeline.close()

    async def close(self) -> None:
        """Answer what was asked, then end the threads. Harmless when closed already."""
        if self._closed:
            return
        self._closed = True
        for _ in self._threads:
            self._questions.put(None)
        for thread in self._threads:
            await join(thread)


class InlineReaders:
    """Answers at once, on the connection that writes."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._closed = False

    def read(self, question: Callable[[Transaction], T]) -> Awaitable[T]:
        """Answer now."""
        if self._closed:
            raise Misuse("the store is closed; open it again before using it")
        return Answered(self._asking.ask(question))

    async def close(self) -> None:
        """Answer no more."""
        self._closed = True
