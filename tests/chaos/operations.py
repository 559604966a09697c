"""The clients' log of what they asked and what they were told. What was asked and never answered is unknown."""

import json
import os
import time
from pathlib import Path
from typing import Any


class OperationLog:
    """One line before each call, one after its answer; each with one write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def asked(self, key: str) -> None:
        """A call is about to be made."""
        self._note("asked", key)

    def answered(self, key: str, **facts: Any) -> None:
        """It was acknowledged."""
        self._note("answered", key, **facts)

    def refused(self, key: str, code: str) -> None:
        """It was refused, or failed with an error that promises nothing."""
        self._note("refused", key, code=code)

    def _note(self, what: str, key: str, **facts: Any) -> None:
        line = {"what": what, "key": key, "at": time.monotonic(), **facts}
        os.write(self._file, json.dumps(line).encode() + b"\n")

    def read(self, what: str) -> dict[str, dict[str, Any]]:
        """The last line of a sort for each key."""
        lines = [json.loads(line) for line in self.path.read_bytes().splitlines()]
        return {line["key"]: line for line in lines if line["what"] == what}

    def refusals(self) -> dict[str, int]:
        """How often each error was answered."""
        counts: dict[str, int] = {}
        for line in self.path.read_bytes().splitlines():
            entry = json.loads(line)
            if entry["what"] == "refused":
                counts[entry["code"]] = counts.get(entry["code"], 0) + 1
        return counts

    def unknown(self) -> set[str]:
        """Keys that were asked for and never acknowledged; such a task may exist, once, or not."""
        return set(self.read("asked")) - set(self.read("answered"))
