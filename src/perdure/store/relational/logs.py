"""What handlers logged: lines come with their reports, and are read page by page."""

from collections.abc import Collection, Sequence
from typing import Annotated

import msgspec

from perdure.domain.attempt import LogLine
from perdure.domain.limits import LOG_MAX_BYTES
from perdure.errors import TooLarge
from perdure.store.relational import cursors
from perdure.store.relational.listing import page_rows
from perdure.store.relational.task_views import no_such_task
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.views import LogPage, LogView

_ORDER = "logged"
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
_PLACE: type[tuple[int, int]] = tuple[_Number, _Number]
"""Fence and sequence."""
_NOTHING = (0, 0)


class _Row(msgspec.Struct, array_like=True):
    fence: int
    sequence: int
    attempt_id: str
    at_us: int
    level: str
    message: str
    dropped: int


_decode = msgspec.json.Decoder(list[_Row]).decode


class LogRoom:
    """How much of the live attempts' logs is stored, and what comes to it in this transaction."""

    def __init__(self, tx: Transaction, tasks: Collection[int]) -> None:
        self._tx = tx
        self._stored: dict[int, tuple[int, int]] = {}
        """Highest sequence and bytes, by task."""
        self._fresh: list[tuple[int, LogLine]] = []
        if tasks:
            for n, highest, size in tx.document("log_size", batch=batch(sorted(tasks))):
                self._stored[n] = highest, size

    def refusal(self, n: int, lines: Sequence[LogLine]) -> TooLarge | None:
        """Why these lines cannot be taken; `None` when they can."""
        size = self._stored.get(n, _NOTHING)[1] + sum(len(line.message.encode()) for line in self._new(n, lines))
        if size <= LOG_MAX_BYTES:
            return None
        return TooLarge(
            f"the log of an attempt has at most {LOG_MAX_BYTES} bytes: drop what does not fit, and say how much",
            field="logs",
            limit_bytes=LOG_MAX_BYTES,
            actual_bytes=size,
        )

    def note(self, n: int, lines: Sequence[LogLine]) -> None:
        """Take lines, to be written together with others."""
        highest, size = self._stored.get(n, _NOTHING)
        for line in self._new(n, lines):
            highest, size = line.sequence, size + len(line.message.encode())
            self._fresh.append((n, line))
        self._stored[n] = highest, size

    def _new(self, n: int, lines: Sequence[LogLine]) -> list[LogLine]:
        highest = self._stored.get(n, _NOTHING)[0]
        return [line for line in lines if line.sequence > highest]

    def write(self) -> None:
        """Store what was noted."""
        if self._fresh:
            rows = [(n, line.sequence, line.ago_us, line.level, line.message, line.dropped) for n, line in self._fresh]
            self._tx.run("log_insert", batch=batch(rows))


def of_task(tx: Transaction, organization: str, task_id: str, limit: int, cursor: str | None) -> LogPage:
    """A page of a task's log, oldest first. Raises `NotFound`, `Malformed` and `Invalid`."""
    limit = page_rows(limit)
    n = tx.value("view_task_number", organization=organization, task=task_id)
    if n is None:
        raise no_such_task(task_id)
    mark = cursors.fingerprint("logs", organization, task_id)
    fence, sequence = (0, 0) if cursor is None else cursors.read(cursor, _ORDER, mark, _PLACE)
    text = tx.value("view_logs", organization=organization, n=n, fence=fence, sequence=sequence, count=limit + 1)
    rows = _decode(text)
    more = len(rows) > limit
    del rows[limit:]
    if rows:
        cursor = cursors.write(_ORDER, mark, (rows[-1].fence, rows[-1].sequence))
    lines = [
        LogView(attempt_id=row.attempt_id, at_us=row.at_us, level=row.level, message=row.message, dropped=row.dropped)
        for row in rows
    ]
    return LogPage(lines, cursor, more)
