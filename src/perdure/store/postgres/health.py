"""How a PostgreSQL store is: its server, who keeps old rows alive there, and its tables."""

from collections.abc import Iterator

import msgspec
import psycopg

from perdure.ambient import Clock
from perdure.domain.limits import SECOND_US
from perdure.store.health import Fact, Health, TableHealth, clock_difference, copying_from, missing_steps
from perdure.store.postgres.connecting import READ_COMMITTED, Address, Connector
from perdure.store.postgres.faults import translate
from perdure.store.postgres.schema import known_steps, taken_steps
from perdure.store.postgres.schema import missing_steps as missing_of
from perdure.store.postgres.session import Limits, Session
from perdure.store.postgres.transaction import Transaction

PATIENCE = Limits(lock_timeout_ms=5_000, statement_timeout_ms=10_000, question_timeout_ms=10_000)
SNAPSHOT_MAX_SECONDS = 300.0
CONNECTIONS_FREE_MIN = 0.1
"""The part of the server's connections that should be free."""
SLOT_MAX_BYTES = 1024**3
DEAD_ROWS_MAX = 100_000
"""So many dead rows are nothing to warn of in a table of any size."""
VACUUM_EVERY_US = 15 * 60 * SECOND_US
"""A table that is busy and has this many dead rows should have been vacuumed in the meantime."""


class _Server(msgspec.Struct):
    server_version: str
    pooled: bool
    fsync: bool
    full_page_writes: bool
    synchronous_commit: str
    autovacuum: bool
    database_bytes: int
    transaction_age: int
    freeze_age: int
    connections: int
    own_connections: int
    connections_max: int
    standbys: int
    slots: list[tuple[str, int]]


class _Snapshots(msgspec.Struct):
    oldest: tuple[float, str] | None
    hidden: int


_TableRow = tuple[str, int, int, int, int | None, int | None]

_decode_server = msgspec.json.Decoder(_Server).decode
_decode_snapshots = msgspec.json.Decoder(_Snapshots).decode
_decode_tables = msgspec.json.Decoder(list[_TableRow]).decode


def examine(url: str, clock: Clock) -> Health:
    """Look at the store. Raises `SchemaTooNew`, one of `Unavailable` or one of `StoreUnusable`."""
    connector = Connector(Address(url), PATIENCE, READ_COMMITTED)
    session = connector.connect()
    try:
        asked_us = clock.wall_us()
        server_us = session.begin_reading()
        ahead_us = server_us - (asked_us + clock.wall_us()) // 2
        tx = Transaction(session.connection, server_us, dialect=session.dialect)
        told = session.dialect.tells_health
        facts = (
            Fact("place", connector.place),
            Fact("psycopg_version", psycopg.__version__),
            *(_of_the_servers_own(tx, session) if told else ()),
            *(Fact("dialect", session.dialect.name, notice) for notice in session.dialect.notices),
            *_of_schema(tx),
            *_of_a_copy(tx, connector.place),
            clock_difference(ahead_us / SECOND_US),
        )
        return Health("postgresql", facts, tuple(_tables(tx)) if told else ())
    except psycopg.Error as error:
        raise translate(error, connector.place) from error
    finally:
        _leave(session)


def _leave(session: Session) -> None:
    session.roll_back()
    session.close()


def _of_the_servers_own(tx: Transaction, session: Session) -> Iterator[Fact]:
    yield from _of_server(_decode_server(tx.value("health_server", backend=session.connection.info.backend_pid)))
    yield from _of_snapshots(_decode_snapshots(tx.value("health_snapshots")))


def _of_server(server: _Server) -> Iterator[Fact]:
    yield Fact("server_version", server.server_version)
    yield Fact("pooled", server.pooled)
    lost = "turn it on, or a crash of the server's machine may lose what was acknowledged and damage the database"
    for name, on in (("fsync", server.fsync), ("full_page_writes", server.full_page_writes)):
        yield Fact(name, on, None if on else f"{name} is off: {lost}")
    yield Fact("synchronous_commit", server.synchronous_commit)
    yield Fact(
        "autovacuum",
        server.autovacuum,
        None if server.autovacuum else "autovacuum or track_counts is off: turn them on, or claims become slow",
    )
    yield Fact("database_bytes", server.database_bytes)
    yield _transaction_age(server)
    yield _connections(server)
    yield Fact("connections_of_perdure", server.own_connections)
    yield Fact("connections_max", server.connections_max)
    yield Fact("standbys", server.standbys)
    yield _slots(server)


def _transaction_age(server: _Server) -> Fact:
    warning = None
    if server.transaction_age > 2 * server.freeze_age:
        warning = (
            "vacuum does not keep up with the transactions of the server: look for an old snapshot, a replication slot "
            "or a prepared transaction, and vacuum the database"
        )
    return Fact("transaction_age", server.transaction_age, warning)


def _connections(server: _Server) -> Fact:
    warning = None
    if server.connections > server.connections_max * (1 - CONNECTIONS_FREE_MIN):
        warning = (
            f"{server.connections} of {server.connections_max} connections are in use: raise max_connections, or put a "
            "pooler before the server"
        )
    return Fact("connections", server.connections, warning)


def _slots(server: _Server) -> Fact:
    name, kept = max(server.slots, key=lambda slot: slot[1], default=("", 0))
    warning = None
    if kept > SLOT_MAX_BYTES:
        warning = (
            f"nobody reads replication slot {name}, and the server keeps its log for it: drop it, or its disk fills"
        )
    return Fact("kept_for_slots_bytes", kept, warning)


def _of_snapshots(snapshots: _Snapshots) -> Iterator[Fact]:
    seconds, who = snapshots.oldest or (0.0, "")
    warning = None
    if seconds > SNAPSHOT_MAX_SECONDS:
        warning = f"a transaction has been open for long ({who}) and keeps dead rows from being removed: end it"
    yield Fact("oldest_snapshot_seconds", seconds, warning)
    # A role without pg_read_all_stats sees its own sessions only; that is no fault.
    yield Fact("sessions_hidden", snapshots.hidden)


def _of_schema(tx: Transaction) -> Iterator[Fact]:
    taken = taken_steps(tx)
    missing = missing_of(taken, known_steps())
    yield Fact("schema_step", max(taken, default=0))
    yield missing_steps([f"{step.number:04d}_{step.name}" for step in missing])


def _of_a_copy(tx: Transaction, place: str) -> Iterator[Fact]:
    if tx.dialect.copies and taken_steps(tx) and tx.value("copy_visible") is not None:
        yield copying_from(place, tx.value("copy_origin"))


def _tables(tx: Transaction) -> Iterator[TableHealth]:
    for name, rows, dead, size, vacuumed_us, analyzed_us in _decode_tables(tx.value("health_tables")):
        late = vacuumed_us is None or tx.now_us - vacuumed_us > VACUUM_EVERY_US
        warning = None
        if late and dead > max(DEAD_ROWS_MAX, rows // 2):
            warning = (
                f"{dead:,} dead rows wait for a vacuum: give autovacuum more room (autovacuum_vacuum_cost_limit), "
                f"or `VACUUM {name}` now"
            )
        yield TableHealth(name, rows, dead, size, vacuumed_us, analyzed_us, warning)
