"""Renewing leases."""

from collections.abc import Sequence

from perdure.domain.attempt import Renewal
from perdure.store.ledger import Renewed
from perdure.store.relational.counting import LEASED, RUNNING, count_moves
from perdure.store.relational.transaction import Transaction, batch


def renew(tx: Transaction, renewals: Sequence[Renewal]) -> list[Renewed | None]:
    """Extend the leases that are live; `None` for the others."""
    document = batch([(*each.hold, each.started, each.delivered, each.ran_us, each.told_us) for each in renewals])
    starts = tx.document("renew_starts", batch=document)
    tx.run("renew", batch=document)
    count_moves(tx, [(lane, LEASED, RUNNING, started) for lane, started in starts])
    answers: list[Renewed | None] = [None] * len(renewals)
    for place, _, _, _, lease_us, cancel_us, _ in tx.document("hold_standing", batch=document):
        answers[place] = Renewed(lease_us, cancel_us)
    return answers
