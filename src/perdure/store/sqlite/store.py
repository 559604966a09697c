"""The store in one file: its parts put together, opened and closed."""

import asyncio
import os
from typing import NamedTuple

import apsw

from perdure.ambient import Clock, SystemClock
from perdure.errors import Misuse
from perdure.store.capabilities import Capabilities
from perdure.store.copying import unfinished
from perdure.store.hub import Hub
from perdure.store.relational.definitions import RelationalDefinitions
from perdure.store.sqlite.caller_connection import CallerConnections
from perdure.store.sqlite.clock import StoreClock, anchor, find_anchor
from perdure.store.sqlite.commits import SYNCHRONOUS, Commits
from perdure.store.sqlite.faults import translate
from perdure.store.sqlite.forking import ForkGate, opening
from perdure.store.sqlite.identity import FileIdentity
from perdure.store.sqlite.lock import FileLock
from perdure.store.sqlite.opening import MEMORY, absolute, check_place, check_version, open_reading, open_writing
from perdure.store.sqlite.readers import InlineReaders, Readers
from perdure.store.sqlite.room import WRITE_A_PAGE, check_room
from perdure.store.sqlite.schema import SqliteSchema, check_current, check_file, known_steps, take_steps
from perdure.store.sqlite.statements import STATEMENTS
from perdure.store.sqlite.wakeups import ForeignChanges
from perdure.store.sqlite.wal import WriteAheadLog, long_log
from perdure.store.sqlite.writer import InlineWriter, Writer
from perdure.store.worker_times import USUAL, WorkerTimes

LOCK_TIMEOUT = 10.0
"""Seconds that a write waits for its turn before it is refused."""

CAPABILITIES = Capabilities(name="sqlite", push=False, caller_transactions=True, profiles=frozenset({"core", "flow"}))


class Opened(NamedTuple):
    """A file that was checked, migrated and anchored in time."""

    connection: apsw.Connection
    lock: FileLock | None
    clock: StoreClock


class SqliteStore:
    """Meets `store.store.Store` on one SQLite file, for many processes."""

    def __init__(
        self,
        path: str,
        writer: Writer,
        readers: Readers,
        hub: Hub,
        callers: CallerConnections,
        worker_times: WorkerTimes = USUAL,
    ) -> None:
        from perdure.store.relational.firing import Submitting
        from perdure.store.relational.schedules import RelationalSchedules
        from perdure.store.relational.views import RelationalViews
        from perdure.store.sqlite.caller import SqliteCaller
        from perdure.store.sqlite.job_submission import submit_jobs
        from perdure.store.sqlite.ledger import SqliteLedger
        from perdure.store.sqlite.submission import submit

        self.path = path
        self.writer = writer
        self.readers = readers
        self.capabilities = CAPABILITIES
        self.ledger = SqliteLedger(writer, readers)
        self.views = RelationalViews(readers, worker_times)
        self.caller = SqliteCaller(callers)
        self.definitions = RelationalDefinitions(writer, readers)
        self.schedules = RelationalSchedules(writer, readers, Submitting(submit, submit_jobs))
        self.schema = SqliteSchema(writer, readers)
        self.wakeups = hub

    @classmethod
    async def open(
        cls,
        path: str | os.PathLike[str],
        *,
        clock: Clock | None = None,
        inline: bool = False,
        synchronous: str = "FULL",
        migrate: bool = True,
        lock_timeout: float = LOCK_TIMEOUT,
        worker_times: WorkerTimes = USUAL,
    ) -> "SqliteStore":
        """Open the file. If `migrate`, create it when it is not there, and bring its schema up to date.

        `inline`: no threads; every call runs at once on the caller's loop. `synchronous`: "FULL" (each acknowledged
        write survives a power loss), "NORMAL" or "OFF" (tests). `worker_times` is what views reckon with. Raises
        `StoreUnreachable`, `StoreReadOnly`, `StoreBusy`, `StoreFull`, `StoreUnusable`, `UnsafeStore`, `SchemaTooNew`
        and `SchemaTooOld`.
        """
        if synchronous not in SYNCHRONOUS:
            raise Misuse(f"synchronous is FULL, NORMAL or OFF, not {synchronous!r}", field="synchronous")
        if path == MEMORY and not inline:
            raise Misuse("a database in memory has one connection: open it with inline=True, or name a file")
        path = absolute(path)
        ticking = clock or SystemClock()
        gate = ForkGate(path)
        if inline:
            opened = _prepare(path, ticking, migrate, lock_timeout)
        else:
            opened = await asyncio.to_thread(_prepare, path, ticking, migrate, lock_timeout)
        hub = Hub()
        commits = _commits(path, opened, ticking, hub, gate, synchronous, lock_timeout)
        commits.adopt(opened.connection)
        if inline:
            return cls._inline(path, commits, opened, hub, worker_times)
        writer = Writer(commits, ForeignChanges(hub, ticking.monotonic_us))
        readers = Readers(path, lambda: open_reading(path, lock_timeout), opened.clock, gate, FileIdentity(path))
        hub.on_first(writer.nudge)
        gate.in_child(hub.forget_all)
        return cls(path, writer, readers, hub, CallerConnections(path, opened.clock), worker_times)

    @classmethod
    def _inline(cls, path: str, commits: Commits, opened: Opened, hub: Hub, worker_times: WorkerTimes) -> "SqliteStore":
        writer = InlineWriter(commits)
        readers = InlineReaders(path, commits.connected, opened.clock)
        own = opened.connection if path == MEMORY else None
        return cls(path, writer, readers, hub, CallerConnections(path, opened.clock, own), worker_times)

    def notices(self) -> list[str]:
        """Whether the log has become long."""
        told = long_log(self.path)
        return [] if told is None else [told]

    async def prove_writes(self) -> bool:
        """Write a page, and find room for a commit of ordinary work. Raises one of `Unavailable`."""
        await self.writer.gather(WRITE_A_PAGE, [None])
        if self.path == MEMORY:
            return True
        try:
            await asyncio.to_thread(check_room, self.path, self.writer.commits.logged_pages)
        except OSError as error:
            raise translate(error, self.path) from error
        return True

    async def close(self) -> None:
        """Finish the flush under way and let go of everything. Harmless when closed already."""
        await self.readers.close()
        await self.writer.close()


def _commits(
    path: str, opened: Opened, clock: Clock, hub: Hub, gate: ForkGate, synchronous: str, lock_timeout: float
) -> Commits:
    return Commits(
        path,
        lambda: open_writing(path, lock_timeout),
        lock=opened.lock,
        identity=None if path == MEMORY else FileIdentity(path),
        clock=opened.clock,
        wal=WriteAheadLog(clock.monotonic_us, round(lock_timeout * 1000)),
        busy_timeout_ms=round(lock_timeout * 1000),
        monotonic_us=clock.monotonic_us,
        gate=gate,
        announce=hub.announce,
        synchronous=synchronous,
    )


def _prepare(path: str, clock: Clock, migrate: bool, lock_timeout: float) -> Opened:
    with opening():
        return _prepare_undisturbed(path, clock, migrate, lock_timeout)


def _prepare_undisturbed(path: str, clock: Clock, migrate: bool, lock_timeout: float) -> Opened:
    check_version(apsw.sqlite_lib_version())
    if path == MEMORY:
        connection = open_writing(path, lock_timeout)
        return Opened(connection, None, _settle_in(connection, clock, migrate))
    check_place(path)
    if not migrate:
        # Before the lock and the log are put beside the file, which may be another program's.
        check_file(path, lock_timeout)
    try:
        lock = FileLock(path, lock_timeout)
        try:
            with lock.held():
                connection = open_writing(path, lock_timeout)
                try:
                    return Opened(connection, lock, _settle_in(connection, clock, migrate))
                except BaseException:
                    connection.close(True)
                    raise
        except BaseException:
            lock.close()
            raise
    except Exception as error:
        raise translate(error, path) from error


def _settle_in(connection: apsw.Connection, clock: Clock, migrate: bool) -> StoreClock:
    if migrate:
        take_steps(connection, known_steps(), clock.wall_us())
    else:
        check_current(connection, known_steps())
    for (origin,) in connection.execute(STATEMENTS["copy_origin"]):
        raise unfinished(connection.filename, origin)
    found = find_anchor(connection, clock)
    if found is not None:
        return found
    connection.execute(STATEMENTS["transaction_begin"])
    try:
        anchored = anchor(connection, clock)
        connection.execute(STATEMENTS["transaction_commit"])
    except BaseException:
        if connection.in_transaction:
            connection.execute(STATEMENTS["transaction_rollback"])
        raise
    return anchored
