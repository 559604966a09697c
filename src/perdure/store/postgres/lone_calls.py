"""Calls that are alone: sent from their callers' event loops, as statements that commit by themselves.

To wake the flusher's thread and to be woken by it takes longer than such a statement, and to begin and commit around it
costs another round trip. What cannot go that way, or did not get through, is left to the thread.

A loop looks at the backlog in its next turn, and again when it has an answer: so what it sends in one turn, or while a
call is under way, travels together. Whoever uses the session next reads what is due on it before anything else, so that
nothing depends on a loop that stands still.
"""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Sequence
from typing import Any

import psycopg

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
        self._looking: set[asyncio.AbstractEventLoop] = set()
        """The loops that are about to look at the backlog, or will when they have an answer. As long as a loop is open,
        it alone puts itself in and takes itself out.
        """
        self._under_way: set[_UnderWay] = set()

    @property
    def inherited(self) -> bool:
        """Whether this is a forked child, with a loop that goes on: what gathered is its parent's."""
        return os.getpid() != self._pid

    def forget(self) -> None:
        """In a forked child: what is under way is its parent's."""
        for each in tuple(self._under_way):
            each.forget()

    def gather(self, operation: Operation, items: Sequence[Any]) -> Awaitable[list[Any]]:
        """Let one item travel alone or, if there is more, in the next flush."""
        loop = asyncio.get_running_loop()
        if loop in self._looking:
            return self._backlog.add(operation, items, ring=False)
        if self._looking and self._others_look():
            return self._backlog.add(operation, items)
        # First this: whatever raises afterwards, what has gathered is looked at.
        self._look_soon(loop)
        return self._backlog.add(operation, items, ring=False)

    def _others_look(self) -> bool:
        for each in tuple(self._looking):
            if each.is_closed():
                self._looking.discard(each)
        return bool(self._looking)

    def _look_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        loop.call_soon(self._look, loop)
        self._looking.add(loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        self._looking.discard(loop)
        if self.inherited or not len(self._backlog):
            return
        call = self._backlog.take_lone(1, loop, asleep=False)
        if call is None:
            self._backlog.nudge()
        else:
            _UnderWay(call, loop, self, self._commits).send()

    def begun(self, under_way: "_UnderWay", loop: asyncio.AbstractEventLoop) -> None:
        """A call sets out. On its loop, which looks again when it is over."""
        self._under_way.add(under_way)
        self._looking.add(loop)

    def leave_to_thread(self, call: Call) -> bool:
        """Let a call without an answer travel in the next flush, if there will be one. From any thread."""
        try:
            self._backlog.put_back(call)
        except Misuse as error:
            # Closed meanwhile.
            call.error = error
            return False
        return True

    def over(self, under_way: "_UnderWay", loop: asyncio.AbstractEventLoop, *, left: bool) -> None:
        """A call is not under way any more. On its loop, which looks what has gathered meanwhile.

        `left`: the thread has the call, and gets that too.
        """
        self.lost(under_way, loop)
        if left:
            self._backlog.nudge()
        elif len(self._backlog):
            self._look_soon(loop)

    def lost(self, under_way: "_UnderWay", loop: asyncio.AbstractEventLoop) -> None:
        """Nobody waits for a call any more: its loop has closed. On any thread."""
        self._under_way.discard(under_way)
        self._looking.discard(loop)


class _UnderWay:
    """A call that was sent by a loop, until the loop has its answer."""

    __slots__ = ("_call", "_calls", "_commits", "_finished", "_here", "_left", "_loop", "_readable", "_told")

    def __init__(self, call: Call, loop: asyncio.AbstractEventLoop, calls: LoneCalls, commits: Commits) -> None:
        self._call = call
        self._loop = loop
        self._calls = calls
        self._commits = commits
        self._readable: int | None = None
        """A copy of the connection's descriptor: another thread may close that one, and its number be given again."""
        self._here = False
        """Whether the loop is in here, and finishes by itself what it finds told when it leaves."""
        self._told = False
        self._left = False
        """Whether the thread has the call."""
        self._finished = False

    def send(self) -> None:
        """Send it, or leave it to the thread if it cannot go that way."""
        sent = False
        try:
            self._calls.begun(self, self._loop)
            self._here = True
            # As where there is no descriptor left. What is wrong with the call itself the thread will find too.
            with contextlib.suppress(OSError, ValueError, psycopg.Error):
                sent = self._commits.send(self._call, self._watch, self._tell)
        finally:
            # However that ended, by a signal handler that raises too: somebody waits for an answer.
            if not sent:
                self._tell()
            self._leave()

    def _watch(self, descriptor: int) -> None:
        self._readable = os.dup(descriptor)
        self._loop.add_reader(self._readable, self._read)

    def _read(self) -> None:
        if self._readable is None or self._calls.inherited:
            return
        looked = False
        try:
            self._here = True
            looked = self._commits.look()
        finally:
            self._leave()
            if not looked:
                self._pause()

    def _leave(self) -> None:
        # In this order, and the other way round where it is told: one of the two sees it, and both may.
        self._here = False
        if self._told:
            self._finish()

    def _pause(self) -> None:
        if self._readable is not None:
            self._loop.call_later(BUSY_PAUSE_SECONDS, self._read_again)
            self._loop.remove_reader(self._readable)

    def _read_again(self) -> None:
        if self._readable is None or self._calls.inherited:
            return
        try:
            self._loop.add_reader(self._readable, self._read)
        except OSError:
            self._loop.call_later(BUSY_PAUSE_SECONDS, self._read_again)

    def _tell(self) -> None:
        """The call has its answer, or will get none this way. On any thread, one that uses the session."""
        if self._told:
            return
        if not self._call.answered:
            self._left = self._calls.leave_to_thread(self._call)
        self._told = True
        if not self._here:
            try:
                self._loop.call_soon_threadsafe(self._finish)
            except RuntimeError:
                # The loop has closed, and its readers are gone with it.
                self.forget()
                self._calls.lost(self, self._loop)

    def _finish(self) -> None:
        if self._finished or self._calls.inherited:
            return
        self._finished = True
        try:
            if not self._left:
                self._call.resolve()
            if self._readable is not None:
                self._loop.remove_reader(self._readable)
            self.forget()
        finally:
            self._calls.over(self, self._loop, left=self._left)

    def forget(self) -> None:
        """Let go of the descriptor."""
        readable, self._readable = self._readable, None
        if readable is not None:
            os.close(readable)
