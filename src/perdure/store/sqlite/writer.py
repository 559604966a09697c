"""The one thread of a process that writes: it takes what has gathered and commits it together."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import Any

from perdure.domain.limits import seconds
from perdure.errors import Misuse
from perdure.flush import Backlog, Call, deliver
from perdure.joining import join
from perdure.store.relational.finished import Finished
from perdure.store.relational.operation import Operation, StandBy
from perdure.store.sqlite.commits import Commits
from perdure.store.sqlite.standing import Standing
from perdure.store.sqlite.wakeups import ForeignChanges

HERE_MAX_ITEMS = 16
"""A lone call of no more items may be flushed on its caller's thread."""


class Writer:
    """Gathers items from any event loop and flushes them on its own thread.

    A lone small call is flushed on its caller's thread, if nothing has to be waited for and commits are quick: waking
    another thread and being woken by it takes as long as the commit.

    A call of one item whose values the store refuses raises; in a call of several, the error is that item's result.
    """

    def __init__(self, commits: Commits, foreign: ForeignChanges) -> None:
        self.commits = commits
        self._foreign = foreign
        self._start()

    def _start(self) -> None:
        self._pid = os.getpid()
        self._backlog = Backlog()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._looking: asyncio.AbstractEventLoop | None = None
        """The loop that will look whether its call is a lone one."""
        self._waiting_for_quiet = False
        """Whether the thread knows that a checkpoint waits for a moment in which nobody writes."""
        self._standing = Standing()

    def gather(self, operation: Operation, items: Sequence[Any]) -> Awaitable[list[Any]]:
        """Let `items` travel in the next flush; one result per item comes back. On any event loop's thread."""
        if self._thread is None or self._pid != os.getpid():
            self._ensure_thread()
        if len(items) > HERE_MAX_ITEMS or not self.commits.quick(operation.durable):
            return self._backlog.add(operation, items)
        loop, looking = asyncio.get_running_loop(), self._looking
        if looking is loop:
            return self._backlog.add(operation, items, ring=False)
        if looking is not None and not looking.is_closed():
            return self._backlog.add(operation, items)
        call = self._backlog.put(operation, items, ring=False)
        # Not at once: what this turn of the loop is about to send as well travels together with it.
        loop.call_soon(self._look_at_backlog, loop)
        self._looking = loop
        return _NextTurn(call)

    def stand_by(self, stand_by: StandBy) -> Callable[[], None]:
        """Let an operation travel with the next lone commit of its event loop that brings work; what withdraws it."""
        return self._standing.add(stand_by)

    def _look_at_backlog(self, loop: asyncio.AbstractEventLoop) -> None:
        """Flush a lone call of this loop here, and leave everything else to the thread."""
        if self._pid != os.getpid():
            # A loop that goes on in a forked child: what gathered is its parent's.
            return
        self._looking = None
        call = self._backlog.take_lone(HERE_MAX_ITEMS, loop)
        if call is None:
            self._backlog.nudge()
            return
        along = self._standing.here()
        try:
            self.commits.flush_at_once(call, along)
        finally:
            # However that ended, by a signal handler that raises too: somebody waits for an answer.
            if call.answered:
                call.resolve()
            else:
                self._leave_to_thread(call)
            if along is not None:
                along.tell()
        if self.commits.checkpoint_due and (not self._waiting_for_quiet or self.commits.checkpoint_pressing):
            self._waiting_for_quiet = True
            self._backlog.nudge()
        elif self.commits.log_short:
            self._backlog.nudge()

    def _leave_to_thread(self, call: Call) -> None:
        try:
            self._backlog.put_back(call)
        except Misuse as error:
            # Closed meanwhile by another loop, on its thread.
            call.error = error
            call.resolve()

    def nudge(self) -> None:
        """Let the thread look at the file, because somebody waits for news now."""
        self._ensure_thread()
        self._backlog.nudge()

    def _ensure_thread(self) -> None:
        if self._pid != os.getpid():
            self._forget_parent()
        with self._starting:
            if self._thread is None and not self._backlog.closed:
                self._thread = threading.Thread(target=self._run, name="perdure-writer", daemon=True)
                self._thread.start()

    def _forget_parent(self) -> None:
        """After a fork: the parent's thread and its callers are not here."""
        closed = self._backlog.closed
        self._start()
        if closed:
            self._backlog.close()

    def _run(self) -> None:
        commits, backlog, foreign = self.commits, self._backlog, self._foreign
        while True:
            if backlog.wait(self._patience()):
                calls = backlog.take()
                commits.flush(calls)
                deliver(calls)
                del calls
            elif backlog.end():
                break
            if commits.checkpoint_pressing or (commits.checkpoint_due and commits.quiet_in_us() <= 0):
                commits.after_flush()
            self._waiting_for_quiet = commits.checkpoint_due
            if commits.log_short:
                commits.lengthen_log()
            if foreign.due():
                commits.look(foreign.look)
        commits.close()

    def _patience(self) -> float | None:
        """Seconds until the thread has something to do by itself; `None` when it has nothing."""
        interval = self._foreign.interval()
        if not self.commits.checkpoint_due:
            return interval
        quiet = max(0.0, seconds(self.commits.quiet_in_us()))
        return quiet if interval is None else min(interval, quiet)

    async def close(self) -> None:
        """Finish what has gathered, then end the thread, which closes the connection. Harmless when closed already."""
        self._ensure_thread()
        self._backlog.close()
        thread = self._thread
        if thread is not None and thread.is_alive():
            await join(thread)


class _NextTurn:
    """The answer of a call that is likely to be there in the next turn of the loop: then it needs no future."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    def __await__(self) -> Generator[Any, None, list[Any]]:
        call = self._call
        if not call.resolved:
            # As `asyncio.sleep(0)`: the look at the backlog is before this among what the loop does next.
            yield
            if not call.resolved:
                return (yield from call.future())
        return call.answer()


class InlineWriter(Writer):
    """Flushes each call at once on the caller's thread: no threads, so that tests and simulations are deterministic."""

    def __init__(self, commits: Commits) -> None:
        self.commits = commits
        self._standing = Standing()
        self._closed = False

    def gather(self, operation: Operation, items: Sequence[Any]) -> Awaitable[list[Any]]:
        """Run it now; the answer is there when this returns."""
        if self._closed:
            raise Misuse("the store is closed; open it again before using it")
        call = Call(operation, items)
        along = self._standing.here()
        if self.commits.flush_at_once(call, along):
            if along is not None:
                along.tell()
        else:
            self.commits.flush([call])
        self.commits.after_flush()
        return Finished(call)

    def nudge(self) -> None:
        """Nothing: there is no thread that could look."""

    async def close(self) -> None:
        """Close the connection."""
        if not self._closed:
            self._closed = True
            self.commits.close()
