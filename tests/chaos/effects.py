"""The effect ledger: what handlers really did, appended to a file outside of the store."""

import json
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple


class Effect(NamedTuple):
    """One line. `at` is the machine's monotonic clock in seconds: all processes share it."""

    what: str
    at: float
    pid: int
    task: str
    attempt: str
    fence: int
    number: int


class Effects:
    """Appends whole lines with one write each, so that lines of different processes never mix."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, what: str, ctx: Any, number: int) -> None:
        """Write down that the handler of an attempt did something."""
        line = (what, time.monotonic(), os.getpid(), ctx.task_id, ctx.attempt_id, ctx.fence, number)
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def read(self, *what: str) -> list[Effect]:
        """All lines so far, or those of some sorts, in the order in which they were written."""
        lines = self.path.read_bytes().splitlines()
        effects = [Effect(*json.loads(line)) for line in lines]
        return [each for each in effects if each.what in what] if what else effects

    def count(self, what: str) -> int:
        """How many lines of a sort there are."""
        return len(self.read(what))

    def by_task(self, what: str) -> dict[str, list[Effect]]:
        """The lines of a sort, by the task's id."""
        found: dict[str, list[Effect]] = defaultdict(list)
        for each in self.read(what):
            found[each.task].append(each)
        return found
