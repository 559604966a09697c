"""A child process that is started afresh whenever a source file changes."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from perdure.cli.output import write_note
from perdure.cli.problems import NO_STORE

LOOK_EVERY = 0.5
"""Seconds between two looks at the files."""
GRACE = 5.0
"""Seconds for what runs to finish before a new child takes over; the rest is handed back and runs there."""
STOP_SECONDS = GRACE + 5.0
WATCHED_MAX_FILES = 20_000
LEFT_OUT = frozenset({"node_modules", "site-packages", "__pycache__", "build", "dist"})

Snapshot = dict[str, tuple[int, int]]


def serve(
    target: str | None,
    concurrency: int | None,
    store: str | None,
    listen: str | None,
    *,
    reload: bool,
    json_log: bool,
) -> int:
    """Serve in a child until SIGINT or SIGTERM; returns the exit code."""
    server = _Server(_command(target, concurrency, listen, json_log), _environ(store))
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, server.stop)
    return server.run(Path.cwd() if reload and target is not None else None)


def _command(target: str | None, concurrency: int | None, listen: str | None, json_log: bool) -> list[str]:
    command = [sys.executable, "-m", "perdure", "serve", "--attached", "--grace", str(GRACE)]
    if target is not None:
        command.append(target)
    if listen is not None:
        command += ["--listen", listen]
    if concurrency is not None:
        command += ["--concurrency", str(concurrency)]
    if json_log:
        command.append("--json")
    return command


def _environ(store: str | None) -> dict[str, str]:
    """The child's environment: the app takes its store from there, unless it insists on its own."""
    return {**os.environ, "PERDURE_STORE": store} if store is not None else dict(os.environ)


class _Server:
    """One child at a time."""

    def __init__(self, command: list[str], environ: dict[str, str]) -> None:
        self._command = command
        self._environ = environ
        self._stopping = threading.Event()
        self._child: subprocess.Popen[bytes] | None = None

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Pass the signal on; the second one makes the child end at once."""
        self._stopping.set()
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)

    def run(self, watched: Path | None) -> int:
        """Run children until told to stop, or until one ends by itself where no files are watched."""
        while True:
            before = snapshot(watched) if watched is not None else {}
            self._child = subprocess.Popen(
                self._command, env=self._environ, stdin=subprocess.PIPE, start_new_session=True
            )
            if self._stopping.is_set():
                self._child.send_signal(signal.SIGTERM)
            changed = self._until_change(watched, before)
            code = self._end_child()
            if not changed:
                return code
            write_note(f"{changed} changed: starting afresh")

    def _until_change(self, watched: Path | None, before: Snapshot) -> str | None:
        """The first file that changed; `None` when this is the end: told to stop, or the store cannot be had."""
        assert self._child is not None
        if watched is None:
            while self._child.poll() is None:
                self._stopping.wait(LOOK_EVERY)
                self._wait_for_stopped()
            return None
        told = False
        while not self._stopping.wait(LOOK_EVERY):
            changed = first_change(before, snapshot(watched))
            if changed is not None:
                return changed
            if self._child.poll() == NO_STORE:
                # No source file can change that.
                return None
            if self._child.poll() is not None and not told:
                write_note("the worker has ended; it is started again when a file changes")
                told = True
        return None

    def _wait_for_stopped(self) -> None:
        if self._stopping.is_set() and self._child is not None:
            self._child.wait()

    def _end_child(self) -> int:
        """Have the child drain, and kill it if it takes too long."""
        assert self._child is not None
        if self._child.poll() is None and not self._stopping.is_set():
            self._child.send_signal(signal.SIGTERM)
        try:
            return self._child.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._child.kill()
            return self._child.wait()


def snapshot(folder: Path) -> Snapshot:
    """Time and size of every Python file below a folder, without hidden, installed and built ones."""
    found: Snapshot = {}
    for path in _sources(folder):
        try:
            status = path.stat()
        except OSError:
            continue
        found[str(path)] = (status.st_mtime_ns, status.st_size)
        if len(found) >= WATCHED_MAX_FILES:
            break
    return found


def first_change(before: Snapshot, after: Snapshot) -> str | None:
    """The name of a file that is new, gone or different."""
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    return changed[0] if changed else None


def _sources(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = [
            name
            for name in folders
            if name not in LEFT_OUT and not name.startswith(".") and not (Path(parent) / name / "pyvenv.cfg").exists()
        ]
        yield from (Path(parent) / name for name in files if name.endswith(".py"))
