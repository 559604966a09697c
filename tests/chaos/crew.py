"""Processes of a case: started, paused, killed by their own numbers, and none left at the end."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

TESTS = Path(__file__).resolve().parents[1]


class Member:
    """One process in a process group of its own."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self.log = log
        self.began = time.monotonic()

    @property
    def pid(self) -> int:
        """Its number, and its group's."""
        return self.process.pid

    @property
    def code(self) -> int | None:
        """Its exit code once it has ended."""
        return self.process.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its whole group, if it still runs."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def kill(self) -> None:
        """End it and all of its group at once."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def pause(self) -> None:
        """Stop it where it stands. Returns when it has stopped."""
        self.signal(signal.SIGSTOP)
        while self.process.poll() is None and _state_of(self.pid) not in "TtZX":
            time.sleep(0.001)

    def resume(self) -> None:
        """Let it go on."""
        self.signal(signal.SIGCONT)

    def end(self, seconds: float = 30.0) -> int:
        """Ask it to drain, and wait: its exit code."""
        self.resume()
        self.signal(signal.SIGTERM)
        return self.wait(seconds)

    def wait(self, seconds: float) -> int:
        """Wait for its end: its exit code. Raises `subprocess.TimeoutExpired`."""
        return self.process.wait(seconds)

    def last_words(self) -> str:
        """The end of what it printed."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-15:])


class Crew:
    """Starts processes on one store; whatever still runs at the end is killed."""

    def __init__(self, folder: Path, store: str | Path, effects: Path) -> None:
        self.folder = folder
        self.store = str(store)
        self.effects = effects
        self.members: list[Member] = []

    def worker(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        at: str | None = None,
        **options: Any,
    ) -> Member:
        """A worker of `chaos.app` with its duties; the options are those of `App.run`. `at`: a gateway's URL."""
        chosen = {"concurrency": 20, "poll": 0.2, **options}
        command = [*_python("chaos.app"), at or self.store, str(self.effects), json.dumps(chosen)]
        return self._start([*prefix, *command], environ)

    def client(
        self,
        log: Path,
        *,
        environ: Mapping[str, str] | None = None,
        prefix: Sequence[str] = (),
        at: str | None = None,
        **orders: Any,
    ) -> Member:
        """A client of `chaos.client` that does as ordered. `at`: a gateway's URL in the place of the store."""
        command = [*_python("chaos.client"), at or self.store, str(log), json.dumps(orders)]
        return self._start([*prefix, *command], environ)

    def serve(self, role: str, port: int, *, environ: Mapping[str, str] | None = None) -> Member:
        """`perdure serve` on the store, in one role, on a port of this machine."""
        command = [*_python("perdure"), "serve", "--role", role, "--listen", f"127.0.0.1:{port}"]
        return self._start([*command, "--store", self.store, "--attached"], environ, attached=True)

    def _start(self, command: Sequence[str], environ: Mapping[str, str] | None, *, attached: bool = False) -> Member:
        log = self.folder / f"process-{len(self.members)}.log"
        places = [str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])]
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                # An attached one ends when nobody holds the other end any more.
                stdin=subprocess.PIPE if attached else subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(places), **(environ or {})},
                start_new_session=True,
            )
        self.members.append(Member(process, log))
        return self.members[-1]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for member in self.members:
            with contextlib.suppress(ProcessLookupError):
                member.signal(signal.SIGKILL)
            member.process.wait()
            if member.process.stdin is not None:
                member.process.stdin.close()


def _python(module: str) -> list[str]:
    return [sys.executable, "-W", "ignore", "-X", "faulthandler", "-m", module]


def _state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "X"
