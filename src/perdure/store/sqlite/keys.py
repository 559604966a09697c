"""Idempotency keys, once what they made is written: nobody else can use one meanwhile, where one transaction writes."""

from collections.abc import Sequence

from perdure.domain import limits
from perdure.store.relational.transaction import Transaction, batch


def bind_keys(tx: Transaction, what: str, keyed: Sequence[tuple[str, str, str | None, str, str | None]]) -> None:
    """Bind idempotency keys to what they made: rows of organization, principal, key, id, request hash."""
    rows = [row for row in keyed if row[2] is not None]
    if rows:
        tx.run("idempotency_insert", what=what, batch=batch(rows), life=limits.IDEMPOTENCY_KEY_LIFE_US)
