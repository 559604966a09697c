"""Keeps the verdicts, so that a judging that was stopped goes on where it was (`--go-on`)."""

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from mutants.looking import KEPT, told_by_each_test, told_by_sources
from mutants.predicates import Mutant
from mutants.running import Verdict


class _Line(NamedTuple):
    caught_by: str
    error: str
    made_a_difference: bool
    holds_with: str
    """A digest of what it was judged with: of the file of the test that caught it, else of all sources and tests."""


class Verdicts:
    """Kept by the text of the mutant: a statement that was changed is judged again.

    What a test caught is judged again when the file of that test has changed or is gone. What survived, and what a
    simulated life, a crash or time caught, is judged again as soon as any source or test has changed.
    """

    def __init__(self, world: str) -> None:
        self._path = KEPT / f"{world}-verdicts.json"
        self._sources = told_by_sources().hexdigest()
        self._tests = told_by_each_test()
        self._lines: dict[str, _Line] = {}
        if self._path.exists():
            self._lines = {key: _Line(*line) for key, line in json.loads(self._path.read_text()).items()}

    def kept(self, found: Sequence[Mutant]) -> list[Verdict]:
        """Those that still hold."""
        lines = [(each, self._lines.get(_key(each))) for each in found]
        return [
            Verdict(mutant, line.caught_by, line.error, line.made_a_difference, 0.0)
            for mutant, line in lines
            if line is not None and line.holds_with == self._holds_with(line.caught_by)
        ]

    def keep(self, verdict: Verdict) -> None:
        """Keep one more."""
        self._lines[_key(verdict.mutant)] = _Line(
            verdict.caught_by, verdict.error, verdict.made_a_difference, self._holds_with(verdict.caught_by)
        )
        KEPT.mkdir(exist_ok=True)
        half = self._path.with_suffix(".half")
        half.write_text(json.dumps(self._lines))
        half.replace(self._path)

    def _holds_with(self, caught_by: str) -> str:
        """What a verdict holds with now; empty, which is no digest, where the test has no file any more."""
        file, is_a_test, _ = caught_by.partition("::")
        return self._tests.get(file, "") if is_a_test else self._sources


def _key(mutant: Mutant) -> str:
    return hashlib.sha256(f"{mutant.name}\n{mutant.sql}".encode()).hexdigest()
