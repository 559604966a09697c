"""Attempts that a duty may have to end: which they are, and what their end is decided by."""

from collections.abc import Sequence
from typing import Any

from perdure.domain import limits
from perdure.domain.attempt import Hold
from perdure.domain.settlement import AttemptFacts, Receipt
from perdure.domain.states import TaskState
from perdure.store.ledger import Doubtful, Guard
from perdure.store.relational.bodies import from_columns
from perdure.store.relational.transaction import Transaction, batch


def facts(tx: Transaction, holds: Sequence[Hold]) -> list[AttemptFacts | None]:
    """What the ends of live attempts are decided by."""
    answers: list[AttemptFacts | None] = [None] * len(holds)
    for place, *row in tx.document("attempt_facts", batch=batch(holds)):
        answers[place] = _facts_of(row)
    return answers


def _facts_of(row: list[Any]) -> AttemptFacts:
    attempt_id, partly, text, encoding, summary = row[12:17]
    result = from_columns(text, encoding)
    return AttemptFacts(
        now_us=row[0],
        state=TaskState(row[1]),
        failures=row[2],
        losses=row[3],
        snoozes=row[4],
        hand_backs=row[5],
        max_attempts=row[6],
        max_losses=row[7],
        on_loss=row[8],
        deadline_us=row[9],
        expires_us=row[10],
        dead_letters=bool(row[11]),
        receipt=None if result is None else Receipt(attempt_id, bool(partly), result, summary),
        retry=row[17],
    )


def suspend_losses(tx: Transaction, until_us: int) -> None:
    """Declare nothing lost before `until_us`, nor longer than a lease can be."""
    until_us = min(until_us, tx.now_us + limits.LEASE_MAX_US)
    tx.run("losses_suspend", until=until_us, suspension_max=limits.LEASE_MAX_US)


def losses_suspended_until(tx: Transaction) -> int:
    """Until when nothing is declared lost."""
    return int(tx.value("losses_suspended", suspension_max=limits.LEASE_MAX_US))


def find_doubtful(tx: Transaction, count: int, strays: bool = True) -> list[Doubtful]:
    """Live attempts that a duty may have to end, with what it decides by.

    `strays`: those too, if there are any, of which no row of a worker is left.
    """
    found = tx.document(
        "doubtful_find",
        count=count,
        strays=strays,
        timeout_grace=limits.TIMEOUT_GRACE_US,
        suspension_max=limits.LEASE_MAX_US,
    )
    if not found:
        return []
    holds = [Hold(organization, task, attempt, "") for organization, task, attempt, _, _ in found]
    return [
        Doubtful(hold, Guard(guard), known, retry)
        for hold, (_, _, _, guard, retry), known in zip(holds, found, facts(tx, holds), strict=True)
        if known is not None
    ]
