"""What can be read of one task, and how tasks known by id have ended."""

from collections.abc import Sequence

import msgspec

from perdure.domain.states import Reason, TaskState
from perdure.domain.task import Body
from perdure.errors import NotFound
from perdure.store.relational import bodies
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.views import AttemptView, Ended, ErrorView, PartView, TaskView

ENDED_MAX_IDS = 1_000
"""How many tasks one statement answers for: their results together stay below what one value may hold."""


class _Attempts(msgspec.Struct):
    ended: list[AttemptView]
    live: AttemptView | None


class _PartRow(msgspec.Struct):
    attempt_id: str
    sequence: int
    key: str
    sha256: str
    final: bool
    superseded: bool
    text: str
    encoding: str
    at_us: int


_EndedRow = tuple[str, TaskState, Reason, str | None, str | None, ErrorView | None, str | None]

_decode_cards = msgspec.json.Decoder(list[TaskView]).decode
_decode_attempts = msgspec.json.Decoder(_Attempts).decode
_decode_parts = msgspec.json.Decoder(list[_PartRow]).decode
_decode_ended = msgspec.json.Decoder(list[_EndedRow]).decode


def cards(tx: Transaction, organization: str, numbers: Sequence[int]) -> list[TaskView]:
    """Tasks without their bodies, in the order of their numbers."""
    return _decode_cards(tx.value("view_task_cards", organization=organization, ns=batch(numbers)))


def task(tx: Transaction, organization: str, task_id: str) -> TaskView | None:
    """One task with its bodies, or `None`."""
    n = tx.value("view_task_number", organization=organization, task=task_id)
    if n is None:
        return None
    (card,) = cards(tx, organization, [n])
    payload, encoding, result, result_encoding = tx.document("view_task_bodies", organization=organization, n=n)
    return msgspec.structs.replace(
        card,
        payload=bodies.from_columns(payload, encoding),
        result=bodies.from_columns(result, result_encoding),
    )


def attempts(tx: Transaction, organization: str, task_id: str) -> list[AttemptView]:
    """All claims of a task, by fence. Raises `NotFound`."""
    text = tx.value("view_attempts", organization=organization, task=task_id)
    if text is None:
        raise no_such_task(task_id)
    found = _decode_attempts(text)
    return found.ended if found.live is None else [*found.ended, found.live]


def parts(tx: Transaction, organization: str, task_id: str) -> list[PartView]:
    """The parts of a task's result by attempt and sequence. Raises `NotFound`."""
    n = tx.value("view_task_number", organization=organization, task=task_id)
    if n is None:
        raise no_such_task(task_id)
    rows = _decode_parts(tx.value("view_parts", organization=organization, n=n))
    return [
        PartView(
            attempt_id=row.attempt_id,
            sequence=row.sequence,
            key=row.key,
            sha256=row.sha256,
            final=row.final,
            superseded=row.superseded,
            data=Body(row.text.encode() if row.encoding == "json" else bytes.fromhex(row.text), row.encoding),
            at_us=row.at_us,
        )
        for row in rows
    ]


def ended(tx: Transaction, organization: str, task_ids: Sequence[str]) -> list[Ended]:
    """Those of `task_ids` that have ended, in their order."""
    found: list[Ended] = []
    for first in range(0, len(task_ids), ENDED_MAX_IDS):
        asked = batch(task_ids[first : first + ENDED_MAX_IDS])
        for id, state, reason, text, encoding, error, summary in _decode_ended(
            tx.value("view_ended", organization=organization, batch=asked)
        ):
            found.append(Ended(id, state, reason, bodies.from_columns(text, encoding), error, summary))
    return found


def no_such_task(task_id: str) -> NotFound:
    """The error for a task that is absent, or another organization's."""
    return NotFound(f"there is no task {task_id}; `perdure task list` shows what there is", what="task", id=task_id)
