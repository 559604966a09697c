"""One transaction as the operations see it: named statements, which each store has in its own words."""

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from perdure.store.wakeups import Topic

_encode = msgspec.json.Encoder().encode


class Transaction(Protocol):
    """A transaction that is open, its instant, and what is to be done once it has committed.

    Statements take whole batches as one JSON document, bound as `batch`, and answer with one JSON document where they
    can. Some stage rows for statements after them in the same transaction: under the names `settling`, `ending`,
    `ended`, `touched` and `joining`. Where a store keeps these is its own affair.
    """

    @property
    def now_us(self) -> int:
        """The instant of this transaction, by the store's clock: microseconds since 1970 UTC. Bound as `now`."""

    def refresh(self) -> None:
        """It may have waited for a lock: from here on its instant is that of now, as far as that is known unasked."""

    def run(self, name: str, /, **bindings: Any) -> list[tuple[Any, ...]]:
        """Run the named statement and return its rows. Bindings that a statement does not use are ignored."""

    def value(self, name: str, /, **bindings: Any) -> Any:
        """Run the named statement and return its one value, or `None` when it has no row."""

    def document(self, name: str, /, **bindings: Any) -> Any:
        """Run the named statement, whose one value is a JSON document, and return that decoded."""

    def latest(self, name: str, /, **bindings: Any) -> Any:
        """As `document`, of a statement that reads what was locked before it: from here on the transaction's instant is
        no earlier than that of anybody whose work it has seen.
        """

    def reach(self, name: str, gates: str) -> None:
        """Gates are about to be locked, which the named statement takes as this batch.

        Raises what has the transaction run again where it has gates already and somebody else has these.
        """

    def is_first_to_reach(self) -> bool:
        """Whether gates may be locked that are not known before. If so, the transaction counts as one that has some."""

    def changes(self) -> int:
        """How many rows the last writing statement changed or staged."""

    def announce(self, topics: Topic) -> None:
        """Hint at these topics once the transaction has committed."""

    def after_commit(self, action: Callable[[], None]) -> None:
        """Call `action` once the transaction has committed; never when it is rolled back."""


def batch(rows: Any) -> str:
    """A batch of rows as the JSON document that statements take."""
    return _encode(rows).decode()
