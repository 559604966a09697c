"""The store in one PostgreSQL database: its parts put together, opened and closed."""

import asyncio
import threading

from perdure.ambient import Clock
from perdure.store.capabilities import Capabilities
from perdure.store.copying import unfinished
from perdure.store.hub import Hub
from perdure.store.postgres.caller import PostgresCaller
from perdure.store.postgres.clock import StoreClock
from perdure.store.postgres.commits import Announcing, Commits, Quiet
from perdure.store.postgres.connecting import PREPARE_AUTO, READ_COMMITTED, Address, Connector
from perdure.store.postgres.dialects import Dialect
from perdure.store.postgres.forking import Inheritance
from perdure.store.postgres.held_up import LOCK_TURN_MS
from perdure.store.postgres.job_submission import submit_jobs
from perdure.store.postgres.ledger import PostgresLedger
from perdure.store.postgres.lifeline import PATIENCE_SECONDS, Company, Lifeline
from perdure.store.postgres.readers import Asking, InlineReaders, Readers
from perdure.store.postgres.schema import PostgresSchema, bring_up_to_date
from perdure.store.postgres.session import Limits
from perdure.store.postgres.submission import submit
from perdure.store.postgres.talking import Talker, talker_of
from perdure.store.postgres.views import PostgresViews
from perdure.store.postgres.wakeups import Line, PostgresWakeups
from perdure.store.postgres.writer import WRITES, InlineWriter, Writer
from perdure.store.relational.definitions import RelationalDefinitions
from perdure.store.relational.firing import Submitting
from perdure.store.relational.operation import Operation
from perdure.store.relational.schedules import RelationalSchedules
from perdure.store.worker_times import USUAL, WorkerTimes

LOCK_TIMEOUT = 10.0
"""Seconds that a write waits for a row that another transaction holds before it is refused."""
STATEMENT_TIMEOUT_MS = 60_000
"""The longest that a statement which writes may take: far beyond the largest flush."""
QUESTION_TIMEOUT_MS = 5_000
"""The longest that a statement which only reads may take."""

SHARES_AFTER = {"renewals": 0.05, "acts": 0.25}
"""Seconds that these and readers wait for an idle session of another before they open their own; claims do not wait."""

PROFILES = frozenset({"core", "flow"})

_LOOK_FOR_A_COPY = Operation("look_for_a_copy", 0, lambda tx, items: [tx.value("copy_origin")])
"""Where the rows come from that are being copied to the store, if any are."""


class PostgresStore:
    """Meets `store.store.Store` on one PostgreSQL database, for many processes on many machines."""

    def __init__(
        self,
        place: str,
        writer: Writer | InlineWriter,
        readers: Readers | InlineReaders,
        wakeups: PostgresWakeups,
        caller: PostgresCaller,
        company: Company,
        dialect: Dialect,
        worker_times: WorkerTimes = USUAL,
    ) -> None:
        self.place = place
        self._company = company
        self.writer = writer
        self.readers = readers
        self._dialect = dialect
        self.capabilities = Capabilities(dialect.name, dialect.hints, caller_transactions=True, profiles=PROFILES)
        self.ledger = PostgresLedger(writer, readers, wakeups.remind)
        self.views = PostgresViews(readers, worker_times)
        self.caller = caller
        self.definitions = RelationalDefinitions(writer, readers)
        self.schedules = RelationalSchedules(writer, readers, Submitting(submit, submit_jobs))
        self.schema = PostgresSchema(writer, readers)
        self.wakeups = wakeups

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        clock: Clock | None = None,
        inline: bool = False,
        migrate: bool = True,
        lock_timeout: float = LOCK_TIMEOUT,
        patience: float = PATIENCE_SECONDS,
        isolation: str = READ_COMMITTED,
        hints: str | None = None,
        prepare: str = PREPARE_AUTO,
        worker_times: WorkerTimes = USUAL,
    ) -> "PostgresStore":
        """Open the database that a libpq URL names, and bring its schema up to date if `migrate`.

        `clock` replaces the server's, for tests. `inline`: no threads and one connection; every call runs at once on
        the caller's loop. `patience`: how long a call waits for a server that has gone away. `isolation`: "read
        committed" or "serializable". `hints`: a URL of the same database past its pooler, or "off". `prepare`: "auto",
        "on" or "off". `worker_times`: what views reckon with. Raises `Misuse`,
        `StoreUnreachable`, `StoreReadOnly`, `StoreBusy`, `StoreUnusable`, `SchemaTooNew` and `SchemaTooOld`.
        """
        turn_ms = min(LOCK_TURN_MS, round(lock_timeout * 1_000))
        timeouts = Limits(turn_ms, STATEMENT_TIMEOUT_MS, QUESTION_TIMEOUT_MS)
        connector = Connector(Address(url), timeouts, isolation, prepare)
        talker = talker_of(connector, hints)
        parts = Parts(connector, StoreClock(clock), patience, lock_timeout)
        if inline:
            parts.prepare(migrate)
            return cls._inline(parts, worker_times)
        await asyncio.to_thread(parts.prepare, migrate, talker)
        line = Line(talker, parts.inheritance, parts.hub)
        wakeups = PostgresWakeups(parts.hub, line)
        writer = Writer(lambda name: parts.commits(name, wakeups), parts.inheritance, parts.stop)
        parts.inheritance.in_child(parts.hub.forget_all)
        readers = Readers(parts.asking, parts.inheritance)
        caller = PostgresCaller(connector, parts.clock, wakeups.watch)
        return cls(connector.place, writer, readers, wakeups, caller, parts.company, connector.dialect, worker_times)

    @classmethod
    def _inline(cls, parts: "Parts", worker_times: WorkerTimes) -> "PostgresStore":
        wakeups = PostgresWakeups(parts.hub, None)
        writer = InlineWriter(parts.commits(WRITES, wakeups))
        readers = InlineReaders(parts.asking(parts.first))
        caller = PostgresCaller(parts.connector, parts.clock)
        to = parts.connector
        return cls(to.place, writer, readers, wakeups, caller, parts.company, to.dialect, worker_times)

    def notices(self) -> list[str]:
        """Whether hints from other processes do not arrive, and whether connections are lacking."""
        return [*self.wakeups.notices(), *self._company.notices(), *self._dialect.notices]

    async def prove_writes(self) -> bool:
        """No proof: the disk is the server's, and how much room it has cannot be asked."""
        return False

    async def close(self) -> None:
        """Finish the flush under way and let go of everything. Harmless when closed already."""
        await self.writer.close()
        await self.readers.close()
        await self.wakeups.close()


class Parts:
    """What the parts of one open store have in common."""

    def __init__(
        self, connector: Connector, clock: StoreClock, patience: float, lock_timeout: float = LOCK_TIMEOUT
    ) -> None:
        self.connector = connector
        self.clock = clock
        self.patience = patience
        self.lock_timeout = lock_timeout
        self.inheritance = Inheritance()
        self.hub = Hub()
        self.stop = threading.Event()
        self.company = Company(connector.place)
        self.inheritance.in_child(self.company.forget)
        self.first = self.lifeline()

    def lifeline(self, shares_after: float = 0.0) -> Lifeline:
        """A session of its own, which opens when it is first needed and all others are in use for so long."""
        made = Lifeline(
            self.connector,
            self.inheritance,
            self.stop,
            self.company,
            patience=self.patience,
            shares_after=shares_after,
        )
        self.company.join(made)
        return made

    def commits(self, name: str, announcing: Announcing) -> Commits:
        """What writes for the flusher of this name."""
        lifeline = self.first if name == WRITES else self.lifeline(SHARES_AFTER.get(name, 0.0))
        return Commits(lifeline, self.clock, announcing, self.connector.place, self.lock_timeout)

    def asking(self, lifeline: Lifeline | None = None) -> Asking:
        """What reads, on a session of its own unless one is given."""
        return Asking(lifeline or self.lifeline(SHARES_AFTER["acts"]), self.clock, self.connector.place)

    def prepare(self, migrate: bool, talker: Talker | None = None) -> None:
        """Connect, bring the schema up to date if `migrate`, and note which start of the server this is.

        Raises `Misuse` when the talker's way leads to another database.
        """
        commits = self.commits(WRITES, Quiet())
        try:
            bring_up_to_date(self.asking(self.first), commits, migrate)
            origin = commits.do(_LOOK_FOR_A_COPY, None)
            if origin is not None:
                raise unfinished(self.connector.place, origin)
            if talker is not None:
                talker.refuse_another_database()
        except BaseException:
            self.first.close()
            raise
