"""Telling holders what is asked of them, and how the parents of their tasks ended."""

from perdure.domain import limits
from perdure.domain.attempt import Hold
from perdure.domain.states import TaskState
from perdure.domain.task import Body
from perdure.errors import LeaseLost, TooLarge
from perdure.store.ledger import Control, ParentResult
from perdure.store.relational.bodies import from_columns
from perdure.store.relational.transaction import Transaction, batch


def control(tx: Transaction, worker_id: str) -> list[Control]:
    """The cancels requested for what the worker holds."""
    return [Control(attempt, cancel_us) for attempt, cancel_us in tx.document("control_read", worker=worker_id)]


def inputs(tx: Transaction, hold: Hold) -> dict[str, ParentResult]:
    """How the parents of a live attempt's task ended, by name."""
    standing = tx.document("hold_standing", batch=batch([hold]))
    if not standing:
        raise lease_lost(hold)
    child = standing[0][1]
    size = tx.value("inputs_size", child=child)
    if size > limits.INPUTS_MAX_BYTES:
        raise TooLarge(
            f"the results of the parents of task {hold.task_id} have {size} bytes, "
            f"more than the {limits.INPUTS_MAX_BYTES} that a handler may be given: return less, or references",
            limit_bytes=limits.INPUTS_MAX_BYTES,
            actual_bytes=size,
        )
    rows = tx.document("inputs_read", child=child)
    return {name: _parent(state, text, encoding) for name, state, text, encoding in rows}


def _parent(state: str, text: str | None, encoding: str | None) -> ParentResult:
    result: Body | None = from_columns(text, encoding)
    return ParentResult(TaskState(state), result)


def lease_lost(hold: Hold) -> LeaseLost:
    """The attempt does not hold its task."""
    return LeaseLost(
        f"attempt {hold.attempt_id} does not hold task {hold.task_id} any more: stop, nothing it writes is taken",
        attempt_id=hold.attempt_id,
        task_id=hold.task_id,
    )
