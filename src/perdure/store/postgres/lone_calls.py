"""Calls that are alone: sent from their callers' event loops, as statements that commit by themselves.

To wake the flusher's thread and to be woken by it takes longer than such a statement, and to begin and commit around it
costs another round trip. What cannot go that way, or did not get through, is left to the thread.

A loop looks at the backlog in its next turn, and again when it has an answer: so what it sends in one turn, or while a
call is under way, travels together. Whoever uses the session next reads what is due on it before anything else, so that
nothing depends on a loop that stands still.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Sequence
from typing import Any

from perdure.errors import Misuse
from perdure.flush import Backlog, Call
from perdure.store.postgres.commits import Commits
from perdure.store.relational.operation import Operation

BUSY_PAUSE_SECONDS = 0.005
"""After so long a loop looks again for an answer that another thread may have read."""


class LoneCalls:
    """Of one flusher: its backlog, and what it commits by."""

    def __init__(self, backlog: Backlog, commits: Commits) -> None:
        self._backlog = backlog
        self._commits = commits
        self._pid = os.getpid()
        self._looking: asyncio.AbstractEventLoop | None = None
        """The loop that is about to look at the backlog, or will when it has an answer."""
        self._under_way: _UnderWay | None = None
        """What was sent last."""

    @property
    def inherited(self) -> bool:
        """Whether this is a forked child, with a loop that goes on: what gathered is its parent's."""
        return os.getpid() != self._pid

    def forget(self) -> None:
        """In a forked child: what is under way is its parent's."""
        if self._under_way is not None:
            self._under_way.forget()

    def gather(self, operation: Operation, items: Sequence[Any]) -> Awaitable[list[Any]]:
        """Let one item travel alone or, if there is more, in the next flush."""
        loop, looking = asyncio.get_running_loop(), self._looking
        if looking is loop:
            return self._backlog.add(operation, items, ring=False)
        if looking is not None and not looking.is_closed():
            return self._backlog.add(operation, items)
        future = self._backlog.add(operation, items, ring=False)
        self._look_soon(loop)
        return future

    def _look_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looking = loop
        loop.call_soon(self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looking = None
        if self.inherited or not len(self._backlog):
            return
        call = self._backlog.take_lone(1, loop, asleep=False)
        if call is None:
            self._backlog.nudge()
            return
        self._under_way, self._looking = _UnderWay(call, loop, self, self._commits), loop
        if not self._under_way.send():
            self._looking = None
            self.leave_to_thread(call)
            if call.answered:
                call.resolve()

    def leave_to_thread(self, call: Call) -> None:
        """Let a call without an answer travel in the next flush. From any thread."""
        try:
            self._backlog.put_back(call)
        except Misuse as error:
            # Closed meanwhile: there will be no other flush.
            call.error = error

    def over(self, loop: asyncio.AbstractEventLoop) -> None:
        """A call is not under way any more. On its loop, which looks what has gathered meanwhile."""
        if self._looking is loop:
            self._look_soon(loop)


class _UnderWay:
    """A call that was sent by a loop, until the loop has its answer."""

    __slots__ = ("_call", "_calls", "_commits", "_loop", "_readable", "_thread", "_told")

    def __init__(self, call: Call, loop: asyncio.AbstractEventLoop, calls: LoneCalls, commits: Commits) -> None:
        self._call = call
        self._loop = loop
        self._thread = threading.get_ident()
        self._calls = calls
        self._commits = commits
        self._readable: int | None = None
        """A copy of the connection's descriptor: another thread may close that one, and its number be given again."""
        self._told = False

    def send(self) -> bool:
        """Send it, if it can go that way."""
        self._readable = self._commits.send(self._call, self._tell)
        if self._readable is None:
            return False
        if self._told:
            self._loop.call_soon(self._finish)
        else:
            self._read_later()
        return True

    def _read_later(self) -> None:
        if self._readable is not None:
            self._loop.add_reader(self._readable, self._read)

    def _read(self) -> None:
        readable = self._readable
        if readable is None or self._calls.inherited:
            return
        looked = self._commits.look()
        if self._told:
            self._finish()
        elif not looked:
            self._loop.remove_reader(readable)
            self._loop.call_later(BUSY_PAUSE_SECONDS, self._read_later)

    def _tell(self) -> None:
        """The call has its answer, or will get none this way. On any thread, one that uses the session."""
        if not self._call.answered:
            self._calls.leave_to_thread(self._call)
        self._told = True
        if threading.get_ident() != self._thread:
            try:
                self._loop.call_soon_threadsafe(self._finish)
            except RuntimeError:
                # The loop has closed, and its readers are gone with it.
                self.forget()

    def _finish(self) -> None:
        readable = self._readable
        if readable is None or self._calls.inherited:
            return
        self._loop.remove_reader(readable)
        self.forget()
        if self._call.answered:
            self._call.resolve()
        self._calls.over(self._loop)

    def forget(self) -> None:
        """Let go of the descriptor."""
        readable, self._readable = self._readable, None
        if readable is not None:
            os.close(readable)
