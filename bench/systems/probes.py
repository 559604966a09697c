"""What handlers leave behind: times, appended to files that outlive whatever happens to the worker."""

import os
import struct
import time
from pathlib import Path

_TICK = struct.Struct("<q")
_PAIR = struct.Struct("<qq")


class Probes:
    """The files of one trial. Every process of the trial may append, and any may read."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._open: dict[str, int] = {}

    def tick(self) -> None:
        """A task has begun."""
        os.write(self._file("ticks"), _TICK.pack(time.monotonic_ns()))

    def begun(self, submitted_ns: int) -> None:
        """A task that was submitted then has begun."""
        os.write(self._file("begun"), _PAIR.pack(submitted_ns, time.monotonic_ns()))

    def mark(self, number: int) -> None:
        """The task of this number has begun."""
        os.write(self._file("marks"), _TICK.pack(number))

    def _file(self, name: str) -> int:
        if name not in self._open:
            self._open[name] = os.open(self.folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        return self._open[name]

    def ticks(self) -> list[int]:
        """When tasks began, in order, in nanoseconds of the machine's monotonic clock."""
        return sorted(number for (number,) in _TICK.iter_unpack(self._read("ticks")))

    def count(self, name: str = "ticks", bytes_each: int = _TICK.size) -> int:
        """How many there are, cheaply."""
        path = self.folder / name
        return path.stat().st_size // bytes_each if path.exists() else 0

    def waits(self) -> list[float]:
        """Milliseconds from each submit to the task's beginning, in the order of the beginnings."""
        return [(begun - submitted) / 1e6 for submitted, begun in _PAIR.iter_unpack(self._read("begun"))]

    def waited(self) -> int:
        """How many of those there are."""
        return self.count("begun", _PAIR.size)

    def marks(self) -> list[int]:
        """The numbers of the tasks that began, one for each time."""
        return [number for (number,) in _TICK.iter_unpack(self._read("marks"))]

    def clear_ticks(self) -> None:
        """Forget the ticks while workers run, and have nothing to do."""
        os.truncate(self._file("ticks"), 0)

    def clear(self) -> None:
        """Forget what was left so far; for times when no worker runs."""
        for name in ("ticks", "begun", "marks"):
            (self.folder / name).unlink(missing_ok=True)

    def _read(self, name: str) -> bytes:
        path = self.folder / name
        return path.read_bytes() if path.exists() else b""
