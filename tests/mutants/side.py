"""What the mutants need to know of a store."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from mutants.predicates import Mutant, Words


class Side(Protocol):
    """One store's statements, how another text is put in for one, and which tests hold them."""

    world: str
    """The name of the store in the conformance suite."""
    foreign: str
    """A word in the parameters of tests that need another store, too."""
    suites: Sequence[str]
    """Folders and files of tests."""
    left_out: Sequence[str]
    """What of them is not run."""
    lives: bool
    """Whether simulated lives are lived on it."""
    transaction: Any
    """The class of its transactions: `run` takes the name of a statement and its bindings."""

    words: Words
    """How its SQL says always and never."""

    def statements(self) -> Mapping[str, str]:
        """The text of every statement by name."""

    def runnable(self, mutant: Mutant) -> Mutant:
        """The mutant in words that the store takes: its planner or parser must not be what catches it."""

    def put(self, statement: str, sql: str) -> None:
        """Let this process run other SQL under the name of a statement."""

    def differing(self, tx: Any, statement: str, bindings: Mapping[str, Any], open_ones: Sequence[Mutant]) -> set[str]:
        """Which mutants of a statement that is about to run would answer or write anything else here."""

    def traced(self, note: Callable[[str], None]) -> AbstractContextManager[None]:
        """Within, the name of every statement that a connection runs is noted."""

    def at_hand(self) -> AbstractContextManager[None]:
        """What all processes that run tests share, while it is there. Nothing else is asked before."""

    def entered(self) -> AbstractContextManager[None]:
        """What a process that was forked to run tests needs of its own."""
