"""The threads of a process that write. Each takes what has gathered for it and commits it together.

Each kind of work has a connection of its own, so that nothing waits behind what it has nothing to do with: a renewal
that comes late costs a lease, and a claim goes on while settles wait for the disk.
"""

import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from perdure.errors import Misuse
from perdure.flush import Backlog, Call, deliver
from perdure.joining import join
from perdure.store.claims import nothing_stands_by
from perdure.store.postgres.commits import Commits
from perdure.store.postgres.forking import Inheritance
from perdure.store.postgres.held_up import HELD_PAUSE_SECONDS
from perdure.store.postgres.lone_calls import LoneCalls
from perdure.store.relational.finished import Finished
from perdure.store.relational.operation import Operation, StandBy

WRITES = "writes"
ROUTES = {"claim": "claims", "renew": "renewals", "note": "renewals", "act": "acts", "fire": "acts"}
"""Which flusher takes an operation, by its name: duties and orders apart, all others are `WRITES`."""


class Flusher:
    """One thread with one connection, started when it is first needed."""

    def __init__(self, name: str, commits: Commits) -> None:
        self.commits = commits
        self._name = name
        self.start_over()

    def start_over(self) -> None:
        """Begin without callers and without a thread: at first, and in a forked child."""
        self._backlog = Backlog()
        self._lone = LoneCalls(self._backlog, self.commits)
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def forget(self) -> None:
        """In a forked child: the connection is the parent's, and what is under way on it."""
        self.commits.lifeline.abandon()
        self._lone.forget()

    def gather(self, operation: Operation, items: Sequence[Any]) -> Awaitable[list[Any]]:
        """Let `items` travel in the next flush, or one by itself."""
        if self._thread is None:
            self._ensure_thread()
        if operation.lone is None or len(items) != 1:
            return self._backlog.add(operation, items)
        return self._lone.gather(operation, items)

    def _ensure_thread(self) -> None:
        with self._starting:
            if self._thread is None and not self._backlog.closed:
                self._thread = threading.Thread(target=self._run, name=f"perdure-{self._name}", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        commits, backlog = self.commits, self._backlog
        while True:
            if backlog.wait(HELD_PAUSE_SECONDS if commits.held_up else None) or not backlog.closed:
                deliver(commits.attempt(backlog.take()))
                continue
            # What a loop has sent may come back.
            commits.lifeline.settle()
            if backlog.end():
                deliver(commits.finish())
                break
        commits.close()

    async def close(self) -> None:
        """Finish what has gathered, then end the thread, which closes the connection."""
        self._backlog.close()
        with self._starting:
            thread = self._thread
        if thread is None:
            self.commits.close()
        elif thread.is_alive():
            await join(thread)


class Writer:
    """Gathers items from any event loop and hands them to the flusher of their kind of work.

    A call of one item whose values the store refuses raises; in a call of several, the error is that item's result.
    """

    def __init__(self, commits: Callable[[str], Commits], inheritance: Inheritance, stop: threading.Event) -> None:
        self._stop = stop
        self._flushers = {name: Flusher(name, commits(name)) for name in (WRITES, *dict.fromkeys(ROUTES.values()))}
        inheritance.in_child(self._start_over)

    def gather(self, operation: Operation, items: Sequence[Any]) -> Awaitable[list[Any]]:
        """Let `items` travel in the next flush; one result per item comes back. On any event loop's thread."""
        return self._flushers[ROUTES.get(operation.name, WRITES)].gather(operation, items)

    def stand_by(self, stand_by: StandBy) -> Callable[[], None]:
        """Nothing: what gathers is committed by threads, and hints tell of it."""
        return nothing_stands_by

    def _start_over(self) -> None:
        for flusher in self._flushers.values():
            flusher.forget()
            flusher.start_over()

    async def close(self) -> None:
        """Finish what has gathered, then end the threads. Harmless when closed already."""
        self._stop.set()
        for flusher in self._flushers.values():
            await flusher.close()


class InlineWriter:
    """Flushes each call at once on the caller's thread: no threads, so that tests and simulations are deterministic."""

    def __init__(self, commits: Commits) -> None:
        self._commits = commits
        self._closed = False

    def gather(self, operation: Operation, items: Sequence[Any]) -> Awaitable[list[Any]]:
        """Run it now; the answer is there when this returns."""
        if self._closed:
            raise Misuse("the store is closed; open it again before using it")
        call = Call(operation, items)
        self._commits.flush([call])
        return Finished(call)

    def stand_by(self, stand_by: StandBy) -> Callable[[], None]:
        """Nothing, as beside threads."""
        return nothing_stands_by

    async def close(self) -> None:
        """Close the connection."""
        if not self._closed:
            self._closed = True
            self._commits.close()
