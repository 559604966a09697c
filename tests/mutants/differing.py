"""Finds where a mutant makes a difference: beside each statement its mutants are run on the same rows, and undone.

A test in which no mutant of a statement ever answers or writes anything else than the statement cannot catch one, so
only the others have to be run.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from mutants.predicates import Mutant
from mutants.side import Side


class Differing:
    """Notes, while it watches, which mutants made a difference."""

    def __init__(self, side: Side, found: Iterable[Mutant]) -> None:
        self.noticed: set[str] = set()
        """Names of mutants. Whoever reads it empties it for what comes next."""
        self.watched: set[str] = set()
        """Names of the statements that a transaction ran; others run where nobody watches, as at the opening."""
        self._side = side
        self._mutants: dict[str, list[Mutant]] = {}
        for mutant in found:
            self._mutants.setdefault(mutant.statement, []).append(mutant)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch every transaction of this process."""
        transaction, differing = self._side.transaction, self
        run, insert = transaction.run, getattr(transaction, "insert", None)

        def watched_run(self: Any, name: str, /, **bindings: Any) -> Any:
            differing._look(self, name, bindings)
            return run(self, name, **bindings)

        def watched_insert(self: Any, name: str, /, shared: Any, rows: Any, width: int) -> None:
            # These have few predicates, and every row has its own values.
            differing.watched.add(name)
            differing.noticed.update(mutant.name for mutant in differing._mutants.get(name, ()))
            insert(self, name, shared, rows, width)  # type: ignore[misc]

        transaction.run = watched_run
        if insert is not None:
            transaction.insert = watched_insert
        try:
            yield
        finally:
            transaction.run = run
            if insert is not None:
                transaction.insert = insert

    def _look(self, tx: Any, name: str, bindings: dict[str, Any]) -> None:
        self.watched.add(name)
        open_ones = [each for each in self._mutants.get(name, ()) if each.name not in self.noticed]
        if open_ones:
            self.noticed |= self._side.differing(tx, name, bindings, open_ones)
