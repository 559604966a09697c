"""PgBouncer in transaction mode before a server of the tests: every transaction may get another session."""

import contextlib
import functools
import os
import re
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg

from servers.postgres import SUPERUSER, NoServer, PostgresServer, as_nobody, die_with_parent, free_port, is_root

PROGRAM = "PERDURE_TEST_PGBOUNCER"
"""Names the program that is to be used instead of the system's."""
PREPARES_SINCE = (1, 21)
"""From this version on it keeps prepared statements apart for each client."""
READY_SECONDS = 20
SESSIONS = 3
"""So many sessions with the server take the transactions of one client by turns."""


class NoPooler(NoServer):
    """No PgBouncer can be started here; the text says why."""


def program() -> Path:
    """Where PgBouncer is. Raises `NoPooler`."""
    named = os.environ.get(PROGRAM) or shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
    if named is None or not Path(named).exists():
        raise NoPooler(f"there is no PgBouncer: install Debian's package pgbouncer, or name the program in {PROGRAM}")
    return Path(named)


@functools.cache
def version() -> tuple[int, int]:
    """The version of the PgBouncer that is here. Raises `NoPooler`."""
    told = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"PgBouncer (\d+)\.(\d+)", told)
    if found is None:
        raise NoPooler(f"{program()} is no PgBouncer: {told.strip()}")
    return int(found[1]), int(found[2])


class Pooler:
    """A PgBouncer that runs."""

    def __init__(self, server: PostgresServer, port: int) -> None:
        self._server = server
        self._port = port

    def url(self, url: str) -> str:
        """The way to one of the server's databases through the pooler."""
        return url.replace(f"127.0.0.1:{self._server.port}/", f"127.0.0.1:{self._port}/")

    def spread(self, url: str) -> None:
        """Let there be several sessions with a database, so that one transaction after the other gets another one."""
        with contextlib.ExitStack() as stack:
            for _ in range(SESSIONS):
                # Sessions that a test before has ended are found to be so by whoever gets them next.
                while not self._begun(stack, url):
                    pass

    def _begun(self, stack: contextlib.ExitStack, url: str) -> bool:
        connection = stack.enter_context(psycopg.connect(self.url(url)))
        try:
            connection.execute("SELECT 1", prepare=False)
        except psycopg.Error:
            connection.close()
            return False
        return True


@contextlib.contextmanager
def pooling(server: PostgresServer, *, prepared_max: int = 0, **settings: str) -> Iterator[Pooler]:
    """A pooler before the server. `prepared_max`: how many prepared statements it keeps. Raises `NoPooler`."""
    if prepared_max and version() < PREPARES_SINCE:
        raise NoPooler(
            f"PgBouncer {'.'.join(map(str, version()))} keeps no prepared statements, only 1.21 and later do"
        )
    chosen = {
        "listen_addr": "127.0.0.1",
        "unix_socket_dir": "",
        "auth_type": "trust",
        "pool_mode": "transaction",
        # The next transaction gets the session that has rested for the longest.
        "server_round_robin": "1",
        "default_pool_size": "20",
        "max_client_conn": "500",
        "max_db_connections": "60",
        **({"max_prepared_statements": str(prepared_max)} if version() >= PREPARES_SINCE else {}),
        **settings,
    }
    folder = Path(tempfile.mkdtemp(prefix="perdure-pgbouncer-"))
    try:
        with _started(folder, server, chosen) as port:
            yield Pooler(server, port)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _started(folder: Path, server: PostgresServer, settings: dict[str, str]) -> Iterator[int]:
    port = free_port()
    users, config = folder / "users.txt", folder / "pgbouncer.ini"
    users.write_text(f'"{SUPERUSER}" ""\n')
    lines = [f"{name} = {value}\n" for name, value in {**settings, "listen_port": port, "auth_file": users}.items()]
    config.write_text(f"[databases]\n* = host=127.0.0.1 port={server.port}\n[pgbouncer]\n{''.join(lines)}")
    if is_root():
        for path in (folder, users, config):
            shutil.chown(path, "nobody")
    with (folder / "log").open("w+") as log:
        process = subprocess.Popen(
            [program(), config],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
            cwd=folder,
            preexec_fn=die_with_parent,
            **as_nobody(),
        )
        try:
            _await(process, port, Path(log.name))
            yield port
        finally:
            process.terminate()
            process.wait()


def _await(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Until it takes connections."""
    for _ in range(READY_SECONDS * 20):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
            break
    raise NoPooler(f"PgBouncer does not start:\n{log.read_text()}")
