"""End an attempt inside a transaction of its handler's own, so that its effects and its result are one."""

from typing import Any

from perdure.domain import limits
from perdure.domain.attempt import Hold
from perdure.domain.settlement import Receipt
from perdure.engine import encoding
from perdure.engine.bounded_text import shortened
from perdure.errors import Misuse
from perdure.store.caller import CallerTransactions


def settle_within(
    caller: CallerTransactions | None, connection: Any, hold: Hold, result: Any, summary: str | None
) -> None:
    """Write the receipt of a live attempt through the handler's connection, on the handler's thread.

    Raises `LeaseLost` (roll back then), `Invalid` and `TooLarge` for the result, `Misuse` where it cannot be done.
    """
    if caller is None:
        raise _not_within()
    caller.settle(connection, hold, _receipt(hold, result, summary))


async def settle_within_async(
    caller: CallerTransactions | None, connection: Any, hold: Hold, result: Any, summary: str | None
) -> None:
    """As `settle_within`, through any connection, without holding the event loop up."""
    if caller is None:
        raise _not_within()
    receipt = _receipt(hold, result, summary)
    await caller.lend(connection, lambda lent: caller.settle(lent, hold, receipt))


def _receipt(hold: Hold, result: Any, summary: str | None) -> Receipt:
    body = encoding.body(result, "result", limits.RESULT_MAX_BYTES)
    told = None if summary is None else shortened(summary, limits.SUMMARY_MAX_BYTES)
    return Receipt(hold.attempt_id, False, body, told)


def _not_within() -> Misuse:
    return Misuse("this store cannot settle inside a transaction of yours: return the result instead")
