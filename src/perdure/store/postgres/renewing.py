"""Renewing leases: one statement locks, extends and answers, so that no other transaction comes in between."""

from collections.abc import Sequence

from perdure.domain.attempt import Hold, Renewal
from perdure.store.ledger import Renewed
from perdure.store.relational.counting import LEASED, RUNNING, count_moves
from perdure.store.relational.transaction import Transaction, batch


def renew(tx: Transaction, renewals: Sequence[Renewal]) -> list[Renewed | None]:
    """Extend the leases that are live; `None` for the others."""
    document = batch([(*each.hold, each.started, each.delivered, each.ran_us, each.told_us) for each in renewals])
    renewed: dict[Hold, Renewed] = {}
    started: list[int] = []
    for place, lane, starts, lease_us, cancel_us in tx.document("renew", batch=document):
        renewed[renewals[place].hold] = Renewed(lease_us, cancel_us)
        if starts:
            started.append(lane)
    count_moves(tx, [(lane, LEASED, RUNNING, 1) for lane in started])
    return [renewed.get(each.hold) for each in renewals]
