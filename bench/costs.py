"""What work costs the server: statements, WAL and syncs, which do not depend on how fast the machine is."""

from dataclasses import dataclass

from bench.servers import LOOKER, Postgres

CONTROL = r"^\s*(SELECT\s+set_config|BEGIN|START TRANSACTION|COMMIT|ROLLBACK|SET|SHOW|RESET|LISTEN|DISCARD)"


@dataclass(frozen=True, slots=True)
class Cost:
    """Counts since `Costs` was made."""

    statements: int
    """Without those that only begin, end or set."""
    control: int
    """Those."""
    wal_bytes: int
    syncs: int
    """Of the WAL."""
    slowest: list[tuple[str, int, float]]
    """The statements that took longest together: the beginning of each, how often, and their milliseconds."""

    def rows(self, per: float, work: float) -> list[str]:
        """Rows of a table of the slowest: calls per so much of the work that was done, microseconds for each of it."""
        return [
            f"| `{query}` | {calls / work * per:,.2f} | {taken * 1_000 / work:,.1f} |"
            for query, calls, taken in self.slowest
        ]


class Costs:
    """Counts from now on, of a database (statements) and its server (the rest)."""

    def __init__(self, server: Postgres, url: str) -> None:
        self._server = server
        self._database = url.rpartition("/")[2]
        server.admin.execute("SELECT pg_stat_statements_reset()")
        self._begin = self._counters()

    def _counters(self) -> tuple[int, int]:
        asked = (
            "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn, "
            "(SELECT coalesce(sum(fsyncs), 0) FROM pg_stat_io WHERE object = 'wal')"
        )
        self._server.admin.execute("SELECT pg_stat_clear_snapshot()")
        [(wal, syncs)] = self._server.admin.execute(asked)
        return int(wal), int(syncs)

    def so_far(self) -> Cost:
        """What it was until now."""
        wal, syncs = self._counters()
        asked = (
            "SELECT query ~* %s AND query !~ 'pg_notify', query, calls, total_exec_time FROM pg_stat_statements "
            "JOIN pg_database ON pg_database.oid = dbid JOIN pg_roles ON pg_roles.oid = userid "
            "WHERE datname = %s AND rolname <> %s ORDER BY total_exec_time DESC"
        )
        rows = self._server.admin.execute(asked, [CONTROL, self._database, LOOKER]).fetchall()
        work = [(query, calls, taken) for control, query, calls, taken in rows if not control]
        return Cost(
            statements=sum(calls for _, calls, _ in work),
            control=sum(calls for control, _, calls, _ in rows if control),
            wal_bytes=wal - self._begin[0],
            syncs=syncs - self._begin[1],
            slowest=[(" ".join(query.split())[:60], calls, taken) for query, calls, taken in work[:12]],
        )
