"""Forks of the process: what a child inherits of an open SQLite would corrupt the file, so it is put away first.

Locks of POSIX are not inherited, but SQLite's memory of them is: a connection that a child opens beside inherited ones
believes that it holds locks which the kernel never gave it. So no fork happens while one of our threads is inside of
SQLite (a mutex would stay locked in the child for ever), and the child closes the inherited connections before it does
anything else, a program's own on the same file too; that touches no lock of the parent. Then it opens its own.
"""

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator

import apsw

from perdure.errors import UnsafeStore

FORK_WAIT_SECONDS = 5.0
"""How long a fork waits for a transaction under way."""


class ForkGate:
    """All connections of one store in this process, and the threads that use them."""

    def __init__(self, path: str) -> None:
        self.file = os.path.realpath(path)
        self._guard = threading.Lock()
        self._turns: list[threading.Lock] = []
        self._held: list[threading.Lock] = []
        self._connections: list[apsw.Connection] = []
        self._in_child: list[Callable[[], None]] = []
        self._doubtful = False
        with _FORKING:
            _GATES.add(self)

    def turn(self) -> threading.Lock:
        """A lock that one thread holds whenever it is inside of SQLite."""
        turn = threading.Lock()
        # A thread that starts during a fork waits here: the fork holds the guard.
        with self._guard:
            self._turns.append(turn)
        return turn

    def admit(self, connection: apsw.Connection) -> None:
        """Close this connection in children."""
        self._connections.append(connection)

    def dismiss(self, connection: apsw.Connection) -> None:
        """The connection is closed."""
        with contextlib.suppress(ValueError):
            self._connections.remove(connection)

    def in_child(self, action: Callable[[], None]) -> None:
        """Do this in children, once the inherited connections are closed."""
        self._in_child.append(action)

    @property
    def doubtful(self) -> bool:
        """Whether this is a child that was forked in the middle of a transaction."""
        return self._doubtful

    def check(self) -> None:
        """Raise `UnsafeStore` in a child that was forked in the middle of a transaction."""
        if self._doubtful:
            raise UnsafeStore(
                "this process was forked while its parent was in the middle of a transaction: "
                "start it again, by `spawn` or `forkserver` rather than `fork`"
            )

    def before(self) -> None:
        """Wait until no thread is inside of SQLite, and keep them out."""
        self._guard.acquire()
        for turn in self._turns:
            if turn.acquire(timeout=FORK_WAIT_SECONDS):
                self._held.append(turn)

    def after_in_parent(self) -> None:
        """Let the threads go on."""
        while self._held:
            self._held.pop().release()
        self._guard.release()

    def after_in_child(self) -> None:
        """Put away what was inherited."""
        self._doubtful = self._doubtful or len(self._held) < len(self._turns)
        self._held.clear()
        self._turns.clear()
        self._guard.release()
        if not self._doubtful:
            for connection in self._connections:
                # The last one to go would move the log into the file; that is the parent's business.
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                connection.close(True)
            self._connections.clear()
        for action in self._in_child:
            action()


_GATES: weakref.WeakSet[ForkGate] = weakref.WeakSet()
"""Those of all stores of this process. The hooks are the same for all: hooks cannot be removed."""
_FORKING = threading.Lock()
"""Held through a fork: no gate is added meanwhile, and no other thread forks."""


@contextlib.contextmanager
def opening() -> Iterator[None]:
    """Open the file of a store meanwhile: nobody forks before it is done."""
    with _FORKING:
        yield


def _put_away_strangers(files: set[str]) -> None:
    """Close what else is open on these files: a program's own connections, and those that were just opened."""
    for connection in apsw.connections():
        with contextlib.suppress(apsw.Error):
            if os.path.realpath(connection.filename) in files:
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                connection.close(True)


def _before() -> None:
    _FORKING.acquire()
    for gate in list(_GATES):
        gate.before()


def _after_in_parent() -> None:
    for gate in list(_GATES):
        gate.after_in_parent()
    _FORKING.release()


def _after_in_child() -> None:
    doubtful = False
    for gate in list(_GATES):
        gate.after_in_child()
        doubtful = doubtful or gate.doubtful
    if not doubtful:
        _put_away_strangers({gate.file for gate in _GATES})
    _FORKING.release()


os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
