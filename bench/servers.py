"""The servers that are measured on: made for one run, durable, the same for every system, gone at the end."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg.sql import SQL, Identifier
from tests.servers.postgres import PostgresServer, running

from bench.environments import server_program

POSTGRES_SETTINGS = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "autovacuum": "on",
    "shared_buffers": "256MB",
    "max_wal_size": "4GB",
    "max_connections": "200",
    "jit": "off",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.max": "10000",
}
REDIS_SETTINGS = {"appendonly": "yes", "appendfsync": "always", "save": ""}
PATIENCE_SECONDS = 30
LOOKER = "looker"
"""Whose the connections and statements are that are not the measured system's."""


class Postgres:
    """A PostgreSQL for one run, and a look at what it does."""

    kind = "postgres"

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._made = 0
        self._looks: dict[str, psycopg.Connection[Any]] = {}
        self.admin = psycopg.connect(server.url("postgres"), autocommit=True)
        self.admin.execute("CREATE EXTENSION pg_stat_statements")
        self.admin.execute(SQL("CREATE ROLE {} SUPERUSER LOGIN").format(Identifier(LOOKER)))

    def fresh(self, name: str) -> str:
        """The URL of a new database. What its predecessors left to do is done first."""
        self._made += 1
        database = f"{name}_{self._made}"
        self.admin.execute(SQL("CREATE DATABASE {}").format(Identifier(database)))
        self.admin.execute("CHECKPOINT")
        return self._server.url(database)

    def drop(self, url: str) -> None:
        """Remove a database, whoever is still in it."""
        if url in self._looks:
            self._looks.pop(url).close()
        self.admin.execute(SQL("DROP DATABASE {} WITH (FORCE)").format(Identifier(_database(url))))

    def connections(self, url: str) -> int:
        """How many there are to this database."""
        asked = (
            "SELECT count(*) FROM pg_stat_activity "
            "WHERE datname = %s AND backend_type = 'client backend' AND usename <> %s"
        )
        [(count,)] = self.admin.execute(asked, [_database(url), LOOKER])
        return int(count)

    def number(self, url: str, query: str) -> int:
        """The one number that a query of the benchmark's own answers with, in a database."""
        if url not in self._looks:
            self._looks[url] = self.look(url)
        [(number,)] = self._looks[url].execute(query.encode())
        return int(number)

    def look(self, url: str) -> psycopg.Connection[Any]:
        """A connection of the benchmark's own to a database."""
        return psycopg.connect(url, autocommit=True, user=LOOKER)

    def version(self) -> str:
        """Which PostgreSQL it is."""
        [(version,)] = self.admin.execute("SHOW server_version")
        return f"PostgreSQL {version}"

    def settings(self) -> str:
        """How it is set up, as the server tells it."""
        names = [name for name in POSTGRES_SETTINGS if "." not in name]
        shown = [(name, *self.admin.execute(SQL("SHOW {}").format(Identifier(name)))) for name in names]
        return ", ".join(f"{name} = {value}" for name, (value,) in shown)


@contextlib.contextmanager
def postgres() -> Iterator[Postgres]:
    """A durable PostgreSQL on a free port of this machine."""
    with running(**POSTGRES_SETTINGS) as server:
        yield Postgres(server)


def _database(url: str) -> str:
    return url.rpartition("/")[2]


class Redis:
    """A Valkey for one run that syncs each write before it answers."""

    kind = "redis"

    def __init__(self, port: int) -> None:
        self.port = port

    def fresh(self, name: str) -> str:
        """The URL of an empty database."""
        self.ask("FLUSHALL")
        return f"redis://127.0.0.1:{self.port}/0"

    def drop(self, url: str) -> None:
        """Empty it."""
        self.ask("FLUSHALL")

    def connections(self, url: str) -> int:
        """How many there are, without the one that asks."""
        return int(self.ask("INFO clients").split("connected_clients:")[1].split()[0]) - 1

    def version(self) -> str:
        """Which server it is."""
        return "Valkey " + self.ask("INFO server").split("valkey_version:")[1].split()[0]

    def settings(self) -> str:
        """How it is set up."""
        return ", ".join(f"{name} = {value or 'never'}" for name, value in REDIS_SETTINGS.items())

    def ask(self, command: str) -> str:
        """One command in words, and its answer as text."""
        with socket.create_connection(("127.0.0.1", self.port), PATIENCE_SECONDS) as line:
            line.sendall(f"{command}\r\n".encode())
            with line.makefile("rb") as answer:
                head = answer.readline().decode().rstrip()
                if head.startswith("$"):
                    return answer.read(int(head[1:])).decode()
        if head.startswith("-"):
            raise ValueError(f"{command}: {head}")
        return head[1:]


@contextlib.contextmanager
def redis() -> Iterator[Redis]:
    """A durable Valkey on a free port of this machine."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="perdure-valkey-"))
    options = [word for name, value in REDIS_SETTINGS.items() for word in (f"--{name}", value)]
    command = [server_program(), "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), *options]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
    try:
        server = Redis(port)
        _await(server, process)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _await(server: Redis, process: "subprocess.Popen[bytes]") -> None:
    begin = time.monotonic()
    while process.poll() is None and time.monotonic() - begin < PATIENCE_SECONDS:
        with contextlib.suppress(OSError):
            if server.ask("PING") == "PONG":
                return
        time.sleep(0.05)
    raise SystemExit(f"the Valkey of process {process.pid} does not start (status {process.poll()})")


def sync_microseconds(samples: int = 200) -> float:
    """The median time of a write of 8 KB and its `fdatasync`, where the servers keep their data."""
    with tempfile.NamedTemporaryFile(prefix="perdure-sync-") as file:
        taken = []
        for _ in range(samples):
            begin = time.perf_counter()
            os.pwrite(file.fileno(), b"x" * 8192, 0)
            os.fdatasync(file.fileno())
            taken.append((time.perf_counter() - begin) * 1e6)
    return sorted(taken)[samples // 2]
