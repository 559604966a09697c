"""Acts that leave nothing else to tell of them: what operators removed for good, by whom and when."""

from collections.abc import Sequence
from typing import Any

from perdure.domain.limits import ACTS_KEPT_US
from perdure.store.relational.transaction import Transaction, batch


def remember(tx: Transaction, organization: str, type: str, actor: str, removed: Sequence[dict[str, Any]]) -> None:
    """Keep one event for each thing that was removed, of no task and no job: theirs would go with them."""
    if removed:
        rows = [(organization, None, None, 1, type, actor, None, batch(each)) for each in removed]
        tx.run("event_insert", batch=batch(rows))


def forget(tx: Transaction, count: int) -> None:
    """Remove at most `count` of those that have been kept long enough."""
    tx.run("remove_acts", before=tx.now_us - ACTS_KEPT_US, count=count)
