"""The one thread of a process that writes: it takes what has gathered and commits it together."""

import os
import threading
from collections.abc import Awaitable, Generator, Sequence
from typing import Any

from perdure.errors import Misuse
from perdure.flush import Backlog, Call, deliver
from perdure.joining import join
from perdure.store.relational.operation import Operation
from perdure.store.sqlite.commits import Commits
from perdure.store.sqlite.wakeups import ForeignChanges


class Finished:
    """An awaitable that is over already: awaiting it never lets the event loop run anything else."""

    __slots__ = ("_call",)

    def __init__(self, call: Call) -> None:
        self._call = call

    def __await__(self) -> Generator[Any, None, list[Any]]:
        if self._call.error is not None:
            raise self._call.error
        return self._call.results or []
        yield


class Writer:
    """Gathers items from any event loop and flushes them on its own thread.

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

    def gather(self, operation: Operation, items: Sequence[Any]) -> Awaitable[list[Any]]:
        """Let `items` travel in the next flush; one result per item comes back. On any event loop's thread."""
        if self._thread is None or self._pid != os.getpid():
            self._ensure_thread()
        return self._backlog.add(operation, items)

    def nudge(self) -> None:
        """Look for changes of other processes from now on."""
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
            if backlog.wait(foreign.interval()):
                calls = backlog.take()
                commits.flush(calls)
                deliver(calls)
                del calls
                commits.after_flush()
                if foreign.due():
                    commits.look(foreign.look)
            elif backlog.closed:
                break
            elif foreign.watched:
                commits.look(foreign.look)
        commits.close()

    async def close(self) -> None:
        """Finish what has gathered, then end the thread, which closes the connection. Harmless when closed already."""
        self._ensure_thread()
        self._backlog.close()
        thread = self._thread
        if thread is not None and thread.is_alive():
            await join(thread)


class InlineWriter(Writer):
    """Flushes each call at once on the caller's thread: no threads, so that tests and simulations are deterministic."""

    def __init__(self, commits: Commits) -> None:
        self.commits = commits
        self._closed = False

    def gather(self, operation: Operation, items: Sequence[Any]) -> Awaitable[list[Any]]:
        """Run it now; the answer is there when this returns."""
        if self._closed:
            raise Misuse("the store is closed; open it again before using it")
        call = Call(operation, items)
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
