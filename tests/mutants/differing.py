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
    """Notes, while it watches, which mutants made a difference since `begin`."""

    def __init__(self, side: Side, found: Iterable[Mutant]) -> None:
        self._side = side
        self._mutants: dict[str, list[Mutant]] = {}
        for mutant in found:
            self._mutants.setdefault(mutant.statement, []).append(mutant)
        self._noticed: set[str] = set()
        self._in_transactions: set[str] = set()
        self._run: set[str] = set()

    def begin(self) -> None:
        """Forget what was noticed."""
        self._noticed.clear()
        self._in_transactions.clear()
        self._run.clear()

    def made(self) -> list[str]:
        """The names of the mutants that made a difference, and of those whose statements ran where nobody could see."""
        unseen = self._run - self._in_transactions
        return sorted(self._noticed.union(each.name for name in unseen for each in self._mutants.get(name, ())))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch every transaction of this process."""
        transaction, differing = self._side.transaction, self
        run, insert = transaction.run, getattr(transaction, "insert", None)
        together = getattr(transaction, "run_together", None)

        def watched_run(self: Any, name: str, /, **bindings: Any) -> Any:
            differing._look(self, name, bindings)
            return run(self, name, **bindings)

        def watched_insert(self: Any, name: str, /, shared: Any, rows: Any, width: int) -> None:
            # These have few predicates, and every row has its own values.
            differing._in_transactions.add(name)
            differing._noticed.update(mutant.name for mutant in differing._mutants.get(name, ()))
            insert(self, name, shared, rows, width)  # type: ignore[misc]

        def watched_together(self: Any, named: Any) -> Any:
            # Each is looked at before any of them is run.
            for name, bindings in named:
                differing._look(self, name, dict(bindings))
            return together(self, named)  # type: ignore[misc]

        transaction.run = watched_run
        if together is not None:
            transaction.run_together = watched_together
        if insert is not None:
            transaction.insert = watched_insert
        try:
            with self._side.traced(self._run.add):
                yield
        finally:
            transaction.run = run
            if together is not None:
                transaction.run_together = together
            if insert is not None:
                transaction.insert = insert

    def _look(self, tx: Any, name: str, bindings: dict[str, Any]) -> None:
        self._in_transactions.add(name)
        open_ones = [each for each in self._mutants.get(name, ()) if each.name not in self._noticed]
        if open_ones:
            self._noticed |= self._side.differing(tx, name, bindings, open_ones)
