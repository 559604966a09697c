"""Copies of a PostgreSQL server: a standby that follows it, a past of it restored from a backup and its archive."""

from pathlib import Path

import psycopg

from servers.postgres import SUPERUSER, PostgresServer

FOLLOWER = "walreceiver"
"""What standbys call themselves, unless told otherwise."""


class Copy(PostgresServer):
    """A server whose data begin as a base backup of another one, which runs."""

    def __init__(self, folder: Path, source: PostgresServer, **settings: str) -> None:
        self.source = source
        super().__init__(folder, **settings)

    def _fill(self) -> None:
        self.run(
            "pg_basebackup",
            *("-D", self.data, "-h", "127.0.0.1", "-p", str(self.source.port), "-U", SUPERUSER),
            *("--checkpoint=fast", "--no-sync", "--wal-method=stream", *self._way()),
        )

    def _way(self) -> tuple[str, ...]:
        return ()


class Standby(Copy):
    """Follows its source until it is promoted."""

    def _way(self) -> tuple[str, ...]:
        return ("--write-recovery-conf",)

    def promote(self) -> None:
        """Let it take writes from now on."""
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            assert connection.execute("SELECT pg_promote()").fetchone() == (True,)


class Restored(Copy):
    """Replays what its source archived, up to a named point, and takes writes from there on."""

    def replay(self, archive: Path, until: str) -> None:
        """Start, and return at that point."""
        (self.data / "recovery.signal").touch()
        self.settings |= {
            "restore_command": f"cp {archive}/%f %p",
            "recovery_target_name": until,
            "recovery_target_action": "promote",
            # So that it is ready when it takes writes, and no sooner.
            "hot_standby": "off",
        }
        self.start()
