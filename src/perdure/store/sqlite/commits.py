"""Runs what has gathered as transactions on the one connection that writes.

The whole flush is one transaction. When it fails by the fault of an item, it is rolled back and done again in parts, as
`store/relational/isolating.py` says.

After an input or output error nothing that was not answered is acknowledged, though it may have been committed; the
connection is closed, and the next flush opens it anew.
"""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import apsw

from perdure.errors import invariant
from perdure.flush import Call, grouped, merged, share
from perdure.store.relational.isolating import Blame, commit, own
from perdure.store.sqlite.clock import StoreClock
from perdure.store.sqlite.faults import BROKEN, DATA_FAULTS, STORE_FAULTS, translate
from perdure.store.sqlite.forking import ForkGate
from perdure.store.sqlite.identity import FileIdentity
from perdure.store.sqlite.lock import FileLock
from perdure.store.sqlite.pace import Pace
from perdure.store.sqlite.standing import Along
from perdure.store.sqlite.statements import STATEMENTS
from perdure.store.sqlite.transaction import Transaction
from perdure.store.sqlite.wal import CUT_RETRY_US, QUIET_US, WriteAheadLog
from perdure.store.wakeups import Subscription, Topic

_BEGIN = STATEMENTS["transaction_begin"]
_COMMIT = STATEMENTS["transaction_commit"]
_ROLLBACK = STATEMENTS["transaction_rollback"]
SYNCHRONOUS = {
    "OFF": STATEMENTS["synchronous_off"],
    "NORMAL": STATEMENTS["synchronous_normal"],
    "FULL": STATEMENTS["synchronous_full"],
}


class Commits:
    """The connection that writes, and how a flush is run on it."""

    def __init__(
        self,
        path: str,
        connect: Callable[[], apsw.Connection],
        *,
        lock: FileLock | None,
        identity: FileIdentity | None,
        clock: StoreClock,
        wal: WriteAheadLog,
        gate: ForkGate,
        announce: Callable[[Topic, Subscription | None], None],
        synchronous: str,
        busy_timeout_ms: int,
        monotonic_us: Callable[[], int],
    ) -> None:
        self._path = path
        self._connect = connect
        self._lock = lock
        self._identity = identity
        self._clock = clock
        self._wal = wal
        self._gate = gate
        self._announce = announce
        self._durable = SYNCHRONOUS[synchronous]
        self._light = SYNCHRONOUS["NORMAL"] if synchronous == "FULL" else self._durable
        self._synchronous = ""
        self._busy_timeout_ms = busy_timeout_ms
        self._connection: apsw.Connection | None = None
        self._turn = gate.turn()
        self._flushing = threading.Lock()
        self._monotonic_us = monotonic_us
        self._committed_us = 0
        self._checkpoint_again_us = 0
        self._blame = Blame(
            is_store_fault=lambda error: isinstance(error, STORE_FAULTS),
            is_data_fault=lambda error: isinstance(error, DATA_FAULTS),
            translate=lambda error: translate(error, path),
        )
        self._paces = {durable: Pace(monotonic_us) for durable in (False, True)}
        gate.in_child(self._begin_in_child)

    def adopt(self, connection: apsw.Connection) -> None:
        """Write through this connection."""
        self._connection = connection
        if self._identity is not None:
            self._identity.forget_log()
        self._synchronous = ""
        self._gate.admit(connection)
        self._wal.watch(connection)

    @property
    def connection(self) -> apsw.Connection | None:
        """The connection that writes; `None` while it is to be opened anew."""
        return self._connection

    def connected(self) -> apsw.Connection:
        """The connection that writes, opened anew if need be."""
        if self._connection is None:
            self._gate.check()
            if self._identity is not None:
                self._identity.check()
            self.adopt(self._connect())
        return self._connection  # type: ignore[return-value]

    def _begin_in_child(self) -> None:
        self._connection = None
        self._turn = self._gate.turn()
        self._flushing = threading.Lock()
        if self._lock is not None:
            self._lock.reopen()

    def flush(self, calls: Sequence[Call]) -> None:
        """Run the calls and give each its answer. Raises nothing: every failure is some call's answer."""
        try:
            self._in_turn(lambda: commit(grouped(calls), self._transact, self._blame))
        except Exception as error:
            self._fail(calls, error)

    def quick(self, durable: bool) -> bool:
        """Whether such commits took so little time of late that an event loop may well do one itself."""
        return self._paces[durable].quick

    def flush_at_once(self, call: Call, along: Along | None = None) -> bool:
        """Run one call and give it its answer, if that needs no waiting. `along` goes with it if it brings work.

        False: nothing was done, `flush` it. That goes for items at fault too, because `flush` finds out which they are.
        """
        if not self._flushing.acquire(blocking=False):
            return False
        try:
            if self._connection is None or not self._lock_at_once():
                return False
            try:
                with self._turn:
                    return self._transact_at_once(self._connection, call, along)
            finally:
                if self._lock is not None:
                    self._lock.release()
        finally:
            self._flushing.release()

    def _lock_at_once(self) -> bool:
        try:
            return self._lock is None or self._lock.acquire_at_once()
        except OSError:
            # `flush` will meet it again, and tell the caller.
            return False

    def _transact_at_once(self, connection: apsw.Connection, call: Call, along: Along | None) -> bool:
        begun_us = self._monotonic_us()
        self._end_interrupted(connection)
        try:
            self._synchronize(connection, call.operation.durable)
            connection.set_busy_timeout(0)
            try:
                connection.execute(_BEGIN)
            except apsw.BusyError:
                return False
            finally:
                connection.set_busy_timeout(self._busy_timeout_ms)
            self._run_and_commit(connection, [[call]], along)
            self._paces[call.operation.durable].note(self._committed_us - begun_us)
        except Exception as error:
            # Of a full disk SQLite has undone all, and without what went along it may have been enough.
            if not isinstance(error, STORE_FAULTS) or (along is not None and isinstance(error, apsw.FullError)):
                if along is not None:
                    along.applied = False
                return False
            self._fail([call], error)
        except BaseException:
            # A signal handler that raises: others must not find the file locked until the next write of this process.
            self._roll_back(connection)
            raise
        return True

    @property
    def logged_pages(self) -> int:
        """How much of the log is in use, since the last commit of this process."""
        return self._wal.pages

    @property
    def checkpoint_due(self) -> bool:
        """Whether `after_flush` has something to do."""
        return self._connection is not None and self._wal.due

    @property
    def checkpoint_pressing(self) -> bool:
        """Whether `after_flush` should be called now, whoever writes meanwhile."""
        return self._connection is not None and self._wal.pressing

    @property
    def log_short(self) -> bool:
        """Whether `lengthen_log` has something to do: only commits that are synced gain by it."""
        return self._durable is SYNCHRONOUS["FULL"] and self._connection is not None and self._wal.short

    def lengthen_log(self) -> None:
        """Make the log longer ahead of its use. Where that fails, commits are slower and nothing else."""
        connection = self._connection
        if connection is None or not self.log_short:
            return
        try:
            self._in_turn(lambda: self._wal.lengthen(connection))
        except Exception as error:
            if isinstance(error, BROKEN):
                self._disconnect()

    def quiet_in_us(self) -> int:
        """How long it takes until nobody has written for a moment, if nobody does; 0 or less: now."""
        return max(self._committed_us + QUIET_US, self._checkpoint_again_us) - self._monotonic_us()

    def after_flush(self) -> None:
        """What is done once the answers are out: checkpoints. Their failures show again at the next commit."""
        connection = self._connection
        if connection is None or not self._wal.due:
            return
        try:
            self._in_turn(lambda: self._wal.checkpoint(connection))
        except Exception as error:
            if isinstance(error, BROKEN):
                self._disconnect()
        if self.checkpoint_due:
            self._checkpoint_again_us = self._monotonic_us() + CUT_RETRY_US

    def look(self, at: Callable[[apsw.Connection], None]) -> None:
        """Use the connection for something that needs no lock, if there is one."""
        with self._turn:
            if self._connection is not None:
                at(self._connection)

    def close(self) -> None:
        """Close the connection, under the lock because the last one to go moves the log into the file."""
        if self._connection is not None:
            try:
                self._in_turn(self._disconnect)
            except Exception:
                with self._flushing, self._turn:
                    self._disconnect()
        if self._lock is not None:
            self._lock.close()

    def _in_turn(self, action: Callable[[], None]) -> None:
        with self._flushing:
            if self._lock is None:
                action()
                return
            self._lock.acquire()
            try:
                with self._turn:
                    action()
            finally:
                self._lock.release()

    def _transact(self, groups: list[list[Call]]) -> None:
        connection = self.connected()
        self._end_interrupted(connection)
        self._synchronize(connection, any(group[0].operation.durable for group in groups))
        connection.execute(_BEGIN)
        self._run_and_commit(connection, groups)

    def _run_and_commit(
        self, connection: apsw.Connection, groups: list[list[Call]], along: Along | None = None
    ) -> None:
        try:
            tx = Transaction(connection, self._clock.now_us())
            if self._identity is not None:
                self._identity.check_now_and_then(tx.now_us)
            answers = [self._apply(tx, group) for group in groups]
            if along is not None and Topic.READY in tx.topics:
                groups = [*groups, [along.call]]
                answers.append(self._apply(tx, groups[-1]))
                along.applied = True
            self._clock.note(tx)
            connection.execute(_COMMIT)
            self._committed_us = self._monotonic_us()
            if self._identity is not None:
                self._identity.check_log()
        except BaseException:
            self._roll_back(connection)
            raise
        self._conclude(tx, groups, answers, along)

    def _apply(self, tx: Transaction, group: list[Call]) -> list[Any]:
        operation = group[0].operation
        items = merged(group)
        results: list[Any] = operation.apply(tx, items)
        invariant(len(results) == len(items), f"{operation.name} gives one result for each item")
        return results

    def _conclude(
        self, tx: Transaction, groups: list[list[Call]], answers: list[list[Any]], along: Along | None
    ) -> None:
        """The transaction has committed: from here on nothing may make it run again."""
        for group, results in zip(groups, answers, strict=True):
            share(group, results)
        try:
            tx.committed()
            if tx.topics:
                self._announce(tx.topics, along.sated if along is not None else None)
        except Exception as error:
            # Callers resend after an unknown outcome and are answered from what is stored.
            for group in groups:
                for call in group:
                    call.error = own(error)

    def _synchronize(self, connection: apsw.Connection, durable: bool) -> None:
        wanted = self._durable if durable else self._light
        if wanted is not self._synchronous:
            connection.execute(wanted)
            self._synchronous = wanted

    def _end_interrupted(self, connection: apsw.Connection) -> None:
        """A signal handler that raises may have ended a commit on the main thread just after its beginning."""
        if connection.in_transaction:
            self._roll_back(connection)

    def _roll_back(self, connection: apsw.Connection) -> None:
        # SQLite has rolled back by itself after a full disk or an input or output error.
        try:
            if connection.in_transaction:
                connection.execute(_ROLLBACK)
        except Exception:
            self._disconnect()

    def _fail(self, calls: Sequence[Call], error: Exception) -> None:
        if isinstance(error, BROKEN):
            self._disconnect()
        elif isinstance(error, apsw.FullError):
            self._wal.found_full()
        translated = translate(error, self._path)
        for call in calls:
            if not call.answered:
                call.error = own(translated)

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        self._gate.dismiss(connection)
        try:
            connection.close()
        except apsw.Error:
            # What could not be closed properly is dropped: there is nothing in it that was acknowledged.
            connection.close(True)
