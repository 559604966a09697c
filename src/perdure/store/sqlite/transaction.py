"""One transaction as the operations of this store see it."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from perdure.store.sqlite.statements import STATEMENTS, for_rows
from perdure.store.wakeups import Topic

ROW_COUNTS = (500, 50, 5, 1)
"""How many rows one step inserts: few different texts, so that each is prepared once and kept."""

_NO_TOPIC = Topic(0)
_decode = msgspec.json.Decoder().decode


class Connection(Protocol):
    """What an `apsw.Connection` and a `sqlite3.Connection` have in common."""

    def execute(self, statement: str, bindings: Any = ..., /) -> Any:
        """Run one statement; the answer iterates over rows."""


class Transaction:
    """A connection inside BEGIN ... COMMIT, its instant, and what is to be done once it has committed.

    Statements take whole batches as one JSON document and answer with one JSON document where they can: every step
    of a statement gives the interpreter lock away, and a busy thread beside takes milliseconds to give it back.
    """

    __slots__ = ("_after_commit", "connection", "now_us", "topics")

    def __init__(self, connection: Connection, now_us: int) -> None:
        self.connection = connection
        self.now_us = now_us
        self.topics = _NO_TOPIC
        self._after_commit: list[Callable[[], None]] = []

    def refresh(self) -> None:
        """It waits for no lock: nobody else writes."""

    def run(self, name: str, /, **bindings: Any) -> list[tuple[Any, ...]]:
        """Run the named statement and return its rows. `:now` is bound to the transaction's instant."""
        bindings["now"] = self.now_us
        return list(self.connection.execute(STATEMENTS[name], bindings))

    def step(self, name: str, /, *values: Any) -> list[tuple[Any, ...]]:
        """Run the named statement with values in the order in which it counts them, and return its rows."""
        return list(self.connection.execute(STATEMENTS[name], values))

    def value(self, name: str, /, **bindings: Any) -> Any:
        """Run the named statement and return its one value, or `None` when it has no row."""
        rows = self.run(name, **bindings)
        return rows[0][0] if rows else None

    def document(self, name: str, /, **bindings: Any) -> Any:
        """Run the named statement, whose one value is a JSON document, and return that decoded."""
        text = self.value(name, **bindings)
        return _decode(text) if text is not None else None

    def latest(self, name: str, /, **bindings: Any) -> Any:
        """As `document`: its instant was taken under the write lock, so it is later than what anybody has written."""
        return self.document(name, **bindings)

    def reach(self, name: str, gates: str) -> None:
        """Nobody else has any: nobody else writes."""

    def is_first_to_reach(self) -> bool:
        """Nobody else has any."""
        return True

    def insert(self, name: str, /, shared: Sequence[Any], rows: Sequence[Any], width: int) -> None:
        """Run the named statement for rows of `width` values, one after the other in `rows`, with what they share.

        Many rows go in one step: binding them is quicker than taking a document apart.
        """
        start, left = 0, len(rows) // width
        for count in ROW_COUNTS:
            while left >= count:
                end = start + count * width
                for _ in self.connection.execute(for_rows(name, count), (*shared, *rows[start:end])):
                    pass
                start, left = end, left - count

    def changes(self) -> int:
        """How many rows the last writing statement changed."""
        return int(self.value("changes"))

    def announce(self, topics: Topic) -> None:
        """Hint at these topics once the transaction has committed."""
        # Combining flags takes longer than a step of a statement.
        self.topics = topics if self.topics is _NO_TOPIC else self.topics | topics

    def after_commit(self, action: Callable[[], None]) -> None:
        """Call `action` once the transaction has committed; never when it is rolled back."""
        self._after_commit.append(action)

    def committed(self) -> None:
        """Do what waited for the commit."""
        for action in self._after_commit:
            action()
        self._after_commit.clear()
