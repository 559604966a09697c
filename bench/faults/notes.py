"""What clients and handlers write down, outside of every system.

It is loaded in each system's environment, so it needs nothing but the standard library.
"""

import json
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple


class Effect(NamedTuple):
    """One line of a handler. `at` is the machine's monotonic clock in seconds."""

    what: str
    """`start` or `end`."""
    number: int
    at: float
    pid: int


class Notes:
    """Two files of one trial: `effects` of handlers, `answers` of clients; whole lines, each with one write."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._open: dict[str, int] = {}

    def effect(self, what: str, number: int) -> None:
        """A handler begins or has come to its end."""
        self._write("effects", [what, number, time.monotonic(), os.getpid()])

    def asked(self, number: int) -> None:
        """A client is about to submit the task of this number."""
        self._write("answers", ["asked", number])

    def answered(self, number: int) -> None:
        """It was acknowledged."""
        self._write("answers", ["answered", number])

    def refused(self, number: int, error: Exception) -> None:
        """It was not, as far as the client was told."""
        self._write("answers", ["refused", number, type(error).__name__])

    def effects(self, what: str) -> list[Effect]:
        """All lines of handlers of one sort."""
        return [each for each in (Effect(*line) for line in self._read("effects")) if each.what == what]

    def runs(self, what: str) -> Counter[int]:
        """How often the task of each number began or ended."""
        return Counter(each.number for each in self.effects(what))

    def numbers(self, what: str) -> set[int]:
        """The numbers that were asked for, answered or refused."""
        return {line[1] for line in self._read("answers") if line[0] == what}

    def _write(self, name: str, line: list[Any]) -> None:
        if name not in self._open:
            self._open[name] = os.open(self.folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(self._open[name], json.dumps(line).encode() + b"\n")

    def _read(self, name: str) -> list[list[Any]]:
        path = self.folder / name
        return [json.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []
