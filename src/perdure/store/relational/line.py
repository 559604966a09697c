"""Places in line: every queued task has one, ascending over all lanes; what comes back goes in front."""

from perdure.store.relational.counting import QUEUED, count_moves
from perdure.store.relational.transaction import Transaction
from perdure.store.wakeups import Topic


def places(tx: Transaction, count: int, front: bool = False) -> int:
    """Take `count` places and return the one before the first of them."""
    last: int = tx.value("seq_take", line="front" if front else "seq", count=count)
    return last - count


def join(tx: Transaction) -> int:
    """Let the tasks staged in `joining` join their lanes, or wait on for their time alone. Returns how many joined."""
    summary = tx.document("joining_summary")
    if not summary:
        return 0
    total = sum(joined for *_, joined in summary)
    tx.run("joining_apply", first=places(tx, total))
    tx.run("joining_clear")
    count_moves(tx, [(lane, source, QUEUED, joined) for lane, source, due, joined in summary if due])
    tx.announce(Topic.READY if all(due for _, _, due, _ in summary) else Topic.READY | Topic.DUE)
    return sum(joined for _, _, due, joined in summary if due)
