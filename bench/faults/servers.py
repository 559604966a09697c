"""Servers that can be ended at once, started again, and made to break the connections of whoever uses them."""

import contextlib
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import psycopg
from tests.servers.postgres import PostgresServer, free_port, running

from bench.environments import server_program
from bench.servers import REDIS_SETTINGS, Redis

DURABLE = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "autovacuum": "on"}
STARTS_SECONDS = 30


class Server(Protocol):
    """What the systems of one sort keep their tasks in."""

    def fresh(self, name: str) -> str:
        """The URL of an empty database."""

    def unfinished(self, url: str, counted_by: str) -> int:
        """How many tasks a system's own tables say are unfinished."""

    def restart(self) -> None:
        """End it as a crash would, and start it again."""

    def cut(self, url: str) -> int:
        """Break every connection to a database: how many."""


class PostgresAt:
    """A durable PostgreSQL."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._made = 0

    def fresh(self, name: str) -> str:
        """The URL of an empty database."""
        self._made += 1
        with psycopg.connect(self._server.url("postgres"), autocommit=True) as admin:
            admin.execute(f"CREATE DATABASE {name.lower()}_{self._made}".encode())
        return self._server.url(f"{name.lower()}_{self._made}")

    def unfinished(self, url: str, counted_by: str) -> int:
        """How many tasks a system's own tables say are unfinished."""
        with psycopg.connect(url, autocommit=True) as looker:
            [(count,)] = looker.execute(counted_by.encode()).fetchall()
        return int(count)

    def restart(self) -> None:
        """End it as a crash would, and start it again."""
        self._server.stop(signal.SIGQUIT)
        self._server.start()

    def cut(self, url: str) -> int:
        """Break every connection to a database: how many."""
        others = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = %s AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
        with psycopg.connect(self._server.url("postgres"), autocommit=True) as admin:
            [(count,)] = admin.execute(others, [url.rpartition("/")[2]]).fetchall()
        return int(count)


class ValkeyAt:
    """A Valkey that syncs each write before it answers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = free_port()
        self._asking = Redis(self._port)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and return once it answers. Raises `TimeoutError`."""
        options = [word for name, value in REDIS_SETTINGS.items() for word in (f"--{name}", value)]
        place = ["--port", str(self._port), "--bind", "127.0.0.1", "--dir", str(self._folder)]
        self._process = subprocess.Popen(
            [server_program(), *place, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        until = time.monotonic() + STARTS_SECONDS
        while time.monotonic() < until:
            with contextlib.suppress(OSError, ValueError):
                if self._asking.ask("PING") == "PONG":
                    return
            time.sleep(0.05)
        raise TimeoutError("the Valkey does not start")

    def stop(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def fresh(self, name: str) -> str:
        """The URL of the database, emptied."""
        self._asking.ask("FLUSHALL")
        return f"redis://127.0.0.1:{self._port}/0"

    def unfinished(self, url: str, counted_by: str) -> int:
        """How many tasks its lists and hashes hold."""
        return sum(int(self._asking.ask(command)) for command in counted_by.split(";"))

    def restart(self) -> None:
        """End it as a crash would, and start it again."""
        self.stop()
        self.start()

    def cut(self, url: str) -> int:
        """Break every connection: how many."""
        return sum(int(self._asking.ask(f"CLIENT KILL TYPE {kind} SKIPME yes")) for kind in ("normal", "pubsub"))


@contextlib.contextmanager
def serving(sort: str) -> Iterator[Server]:
    """A server of a sort, `postgres` or `redis`, gone at the end."""
    if sort == "postgres":
        with running(**DURABLE) as server:
            yield PostgresAt(server)
        return
    folder = Path(tempfile.mkdtemp(prefix="perdure-valkey-"))
    valkey = ValkeyAt(folder)
    try:
        yield valkey
    finally:
        valkey.stop()
        shutil.rmtree(folder, ignore_errors=True)
