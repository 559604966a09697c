"""Receipts: proof in a caller's own transaction that the effects of an attempt were committed."""

from perdure.domain.attempt import Hold
from perdure.domain.settlement import Receipt
from perdure.store.relational.bodies import text_of
from perdure.store.relational.renewing import lease_lost
from perdure.store.relational.transaction import Transaction


def write_receipt(tx: Transaction, hold: Hold, receipt: Receipt) -> int:
    """Write the receipt of a live attempt; returns the number of its task. Raises `LeaseLost`."""
    written: int | None = tx.value(
        "receipt_insert",
        organization=hold.organization,
        task=hold.task_id,
        attempt=hold.attempt_id,
        token=hold.token,
        partly=int(receipt.partly),
        result=text_of(receipt.result),
        encoding=receipt.result.encoding,
        summary=receipt.summary,
        digest="",
    )
    if written is None:
        raise lease_lost(hold)
    return written
