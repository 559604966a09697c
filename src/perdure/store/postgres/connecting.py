"""Connecting: what must be true of the address, the server and the database before anything is asked of them."""

import re
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.numeric import Int8Dumper

from perdure.errors import Misuse, PerdureError, StoreReadOnly, StoreUnreachable, StoreUnusable
from perdure.store.postgres.dialects import DIALECTS, POSTGRES
from perdure.store.postgres.faults import crowded, told, translate
from perdure.store.postgres.session import Limits, Session

SERVER_VERSION_MIN = 15
CONNECT_TIMEOUT_SECONDS = 5
KEEPALIVE_SECONDS = 5
"""A server that vanished without a word is noticed after a few times this."""

READ_COMMITTED = "read committed"
SERIALIZABLE = "serializable"
ISOLATIONS = (READ_COMMITTED, SERIALIZABLE)

PREPARE_AUTO = "auto"
PREPARE_ON = "on"
PREPARATIONS = (PREPARE_AUTO, PREPARE_ON, "off")
"""Whether statements are prepared: where no pooler is noticed, wherever, nowhere."""


class _Refusal(NamedTuple):
    """How a server turns somebody away, and what to do about it."""

    says: re.Pattern[str]
    advice: str


_REFUSALS = (
    _Refusal(
        re.compile(r"password authentication failed|no password supplied|authentication failed"),
        "{place} refuses the password of {user}: correct it in the store's URL, PGPASSWORD or ~/.pgpass",
    ),
    _Refusal(
        re.compile(r'database ".*" does not exist'),
        "there is no database {database} at {place}: create it (`createdb {database}`), or name another",
    ),
    _Refusal(
        re.compile(r'role ".*" does not exist|role ".*" is not permitted to log in'),
        "{place} knows no user {user} that may log in: create the role, or name another in the store's URL",
    ),
    _Refusal(
        re.compile(r"no pg_hba\.conf entry|permission denied for database"),
        "{place} does not let {user} in from here ({told}): allow it in pg_hba.conf, or grant CONNECT on the database",
    ),
    _Refusal(
        re.compile(r"certificate|SSL"),
        "{place} and this process do not agree on TLS ({told}): look at sslmode and sslrootcert in the store's URL",
    ),
)
"""What nobody has to be asked twice."""

_CROWDED = re.compile(r"too many (clients|connections)|remaining connection slots")


class Address:
    """Where a store is: how it is connected to, and how it is shown. Raises `Misuse` for what cannot be read."""

    def __init__(self, url: str) -> None:
        scheme, _, rest = url.partition("://")
        self.dialect = DIALECTS.get(scheme, POSTGRES)
        given = _parsed(url if self.dialect is POSTGRES else f"postgresql://{rest}")
        host = str(given.get("host") or given.get("hostaddr") or "localhost")
        self.user = str(given.get("user") or "the default user")
        self.database = str(given.get("dbname") or given.get("user") or "the default database")
        server = "PostgreSQL" if self.dialect is POSTGRES else "CockroachDB"
        self.place = f"{server} at {host}:{given.get('port') or 5432}/{self.database}"
        defaults: dict[str, Any] = {
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "application_name": "perdure",
            "keepalives_idle": KEEPALIVE_SECONDS,
            "keepalives_interval": KEEPALIVE_SECONDS,
            "keepalives_count": 3,
            "tcp_user_timeout": 4 * KEEPALIVE_SECONDS * 1000,
            # Asking for Kerberos first costs a round trip.
            "gssencmode": "disable",
        }
        if "," in host:
            defaults["target_session_attrs"] = "read-write"
        self.conninfo = make_conninfo("", **{**defaults, **given, "client_encoding": "UTF8"})


def _parsed(url: str) -> dict[str, Any]:
    try:
        given: dict[str, Any] = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        given = {"port": "unknown"}
    # A password with a slash in it, as it is, is read as something else, which would be shown to everybody.
    if not re.fullmatch("[0-9,]*", str(given.get("port", ""))) or re.search("[@/]", str(given.get("dbname", ""))):
        raise Misuse(
            "the store's URL cannot be read: write postgresql://user:password@host:port/database, and special "
            "characters of the password as %XX"
        )
    return given


class Connector:
    """Makes sessions with the server."""

    def __init__(self, address: Address, limits: Limits, isolation: str, prepare: str = PREPARE_AUTO) -> None:
        if isolation not in ISOLATIONS:
            raise Misuse(f"isolation is one of {', '.join(ISOLATIONS)}, not {isolation!r}", field="isolation")
        if prepare not in PREPARATIONS:
            raise Misuse(f"prepare is one of {', '.join(PREPARATIONS)}, not {prepare!r}", field="prepare")
        self.prepare = None if prepare == PREPARE_AUTO else prepare == PREPARE_ON
        self.address = address
        self.limits = limits
        self.dialect = address.dialect
        self.isolation = SERIALIZABLE if self.dialect.serializable else isolation
        self.serializable = self.isolation == SERIALIZABLE

    @property
    def place(self) -> str:
        """Where the store is, without a password."""
        return self.address.place

    def connect(self) -> Session:
        """A session for transactions. Raises one of `Unavailable` or `StoreUnusable`."""
        connection = self.dial()
        try:
            return Session(connection, self.limits, self.serializable, prepare=self.prepare, dialect=self.dialect)
        except psycopg.Error as error:
            connection.close()
            raise translate(error, self.place) from error

    def dial(self) -> psycopg.Connection[Any]:
        """A plain connection that was checked, where each statement commits. Raises as `connect`."""
        try:
            connection = psycopg.connect(self.address.conninfo, autocommit=True)
        except psycopg.Error as error:
            raise self._refused(error) from error
        try:
            self._check(connection)
        except BaseException:
            connection.close()
            raise
        # Every number is sent as of one type, so that a statement is prepared once and not for each length of number.
        connection.adapters.register_dumper(int, Int8Dumper)
        return connection

    def _check(self, connection: psycopg.Connection[Any]) -> None:
        version = connection.info.server_version
        if version < SERVER_VERSION_MIN * 10_000:
            raise StoreUnusable(
                f"{self.place} is of version {version // 10_000}; perdure needs {SERVER_VERSION_MIN} or later: "
                "upgrade the server",
                store=self.place,
                version=version,
            )
        encoding = connection.info.parameter_status("server_encoding")
        if encoding not in (None, "UTF8"):
            raise StoreUnusable(
                f"{self.place} stores text as {encoding}, which has no room for every character: create the database "
                "with ENCODING 'UTF8'",
                store=self.place,
                encoding=encoding,
            )
        if connection.info.parameter_status("in_hot_standby") == "on":
            raise StoreReadOnly(
                f"{self.place} is a standby and takes no writes: name the primary server, or all of them, as "
                "postgresql://host1,host2/database",
                store=self.place,
            )

    def _refused(self, error: psycopg.Error) -> PerdureError:
        text, address = str(error), self.address
        if _CROWDED.search(text):
            return crowded(error, address.place)
        facts = {"place": address.place, "user": address.user, "database": address.database, "told": told(error)}
        for refusal in _REFUSALS:
            if refusal.says.search(text):
                return StoreUnreachable(refusal.advice.format(**facts), store=address.place, permanent=True)
        return StoreUnreachable(
            f"{address.place} cannot be reached ({told(error)}): is the server running, and are host and port right?",
            store=address.place,
        )


def worth_waiting(error: PerdureError) -> bool:
    """Whether the server may take the same connection in a moment."""
    return not error.fields.get("permanent") and not isinstance(error, StoreUnusable)
