"""Places in line: every queued task has one, ascending over all lanes; what comes back goes in front."""

from perdure.store.relational.transaction import Transaction


def places(tx: Transaction, count: int, front: bool = False) -> int:
    """Take `count` places and return the one before the first of them."""
    last: int = tx.value("seq_take", line="front" if front else "seq", count=count)
    return last - count
