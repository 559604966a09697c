"""A task's history, derived from the rows that exist; what no row tells is kept as explicit events."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from perdure.domain.policy import SYSTEM
from perdure.domain.settlement import NOT_STOPPED
from perdure.domain.states import ENDED, AttemptState, Reason, TaskState
from perdure.store.relational.history_lines import EventRow, Line, Rank, in_order
from perdure.store.relational.task_views import no_such_task
from perdure.store.relational.transaction import Transaction
from perdure.store.views import EventView

_OF_ATTEMPT = frozenset({"phase", "grown", "late_result"})
_AFTER_END = frozenset({"discarded", "redacted"})
_AGAIN = frozenset({"redriven", "revived"})
_SOME_WORKER = "worker"
"""The actor of events that name an attempt: its worker."""
_BY_OTHERS = frozenset({Reason.UPSTREAM_FAILED, Reason.TRIGGER_UNMET})
"""Reasons of cancellations that nobody requested of this task: the end alone tells them."""


class _Attempt(msgspec.Struct):
    id: str
    fence: int
    generation: int
    number: int
    worker: str
    leased_us: int
    queued_us: int | None = None
    started_us: int | None = None
    state: AttemptState | None = None
    reason: str | None = None
    task_state: TaskState | None = None
    actor: str | None = None
    ended_us: int | None = None
    due_us: int | None = None
    error: str | None = None
    """Its type."""


class _Standing(msgspec.Struct, kw_only=True):
    """What `live` and `ends` both tell."""

    generation: int
    fence: int
    state: TaskState
    attempt_id: str | None
    queued_us: int | None
    cancel_us: int | None
    cancel_actor: str | None
    cancel_reason: str | None
    cancel_text: str | None
    cancel_delivered_us: int | None
    reason: str | None = None
    actor: str | None = None
    finished_us: int | None = None


class _Rows(msgspec.Struct):
    created_us: int
    principal: str
    initiator: str
    standing: _Standing
    attempts: list[_Attempt]
    """By fence, the live one last."""
    events: list[EventRow]


_decode = msgspec.json.Decoder(_Rows).decode


def of_task(tx: Transaction, organization: str, task_id: str) -> list[EventView]:
    """A task's history, in order. Raises `NotFound`."""
    text = tx.value("view_history", organization=organization, task=task_id)
    if text is None:
        raise no_such_task(task_id)
    return in_order(_TaskHistory(_decode(text)).lines())


class _TaskHistory:
    def __init__(self, rows: _Rows) -> None:
        self._rows = rows

    def lines(self) -> Iterator[Line]:
        """The lines, in no particular order."""
        rows, standing = self._rows, self._rows.standing
        yield self._line(rows.created_us, 1, 0, Rank.SUBMITTED, "submitted", rows.principal)
        ended: set[int] = set()
        fence = 0
        for attempt in rows.attempts:
            if attempt.task_state in ENDED:
                ended.add(attempt.generation)
            yield from self._queued(attempt.queued_us, attempt.generation, fence)
            yield from self._attempt(attempt)
            fence = attempt.fence
        if standing.attempt_id is None:
            yield from self._queued(standing.queued_us, standing.generation, fence)
            if standing.finished_us is not None:
                actor = standing.actor or SYSTEM
                place = standing.finished_us, standing.generation, fence
                yield self._ended_waiting(*place, actor, standing.state, standing.reason)
        yield from self._cancel(standing, fence)
        for event in rows.events:
            if event.type not in ENDED:
                yield from self._explicit(event)
            elif event.generation not in ended:
                yield from self._earlier_end(event)

    def _line(self, at_us: int, generation: int, fence: int, rank: int, type: str, actor: str, /, **data: Any) -> Line:
        return Line(at_us, generation, fence, rank, 0, type, actor, self._rows.initiator, data)

    def _queued(self, at_us: int | None, generation: int, fence: int) -> Iterator[Line]:
        if at_us is not None:
            yield self._line(at_us, generation, fence, Rank.QUEUED, "queued", SYSTEM)

    def _attempt(self, attempt: _Attempt) -> Iterator[Line]:
        place = attempt.generation, attempt.fence
        told: dict[str, Any] = {"attempt": attempt.id, "fence": attempt.fence, "number": attempt.number}
        yield self._line(attempt.leased_us, *place, Rank.LEASED, "leased", attempt.worker, **told)
        if attempt.started_us is not None:
            yield self._line(attempt.started_us, *place, Rank.STARTED, "started", attempt.worker, attempt=attempt.id)
        if attempt.ended_us is None or attempt.state is None or attempt.task_state is None:
            return
        actor = attempt.actor or attempt.worker
        told |= {"worker": attempt.worker, "reason": attempt.reason, "state": attempt.task_state}
        told["due_us"] = attempt.due_us
        yield self._line(attempt.ended_us, *place, Rank.ATTEMPT_ENDED, attempt.state, actor, **told)
        if attempt.task_state in ENDED:
            ended = {"state": attempt.task_state, "reason": attempt.reason}
            yield self._line(attempt.ended_us, *place, Rank.ENDED, "ended", actor, **ended)

    def _ended_waiting(
        self, at_us: int, generation: int, fence: int, actor: str, state: str, reason: str | None
    ) -> Line:
        """The end of a generation that no attempt ended."""
        return self._line(at_us, generation, fence, Rank.ENDED_WAITING, "ended", actor, state=state, reason=reason)

    def _earlier_end(self, event: EventRow) -> Iterator[Line]:
        """What was kept, when the task was run again, of an end that no attempt made."""
        data, generation = event.data or {}, event.generation
        before = self._fence(lambda row: row.generation <= generation)
        yield from self._queued(data.get("queued_us"), generation, before)
        yield self._ended_waiting(event.at_us, generation, before, event.actor, event.type, data.get("reason"))

    def _cancel(self, standing: _Standing, fence: int) -> Iterator[Line]:
        """The ladder: requested, delivered to the handler, stopped."""
        if standing.cancel_us is None or standing.cancel_reason in _BY_OTHERS:
            return
        place = standing.generation, fence
        told = {"reason": standing.cancel_reason, "text": standing.cancel_text}
        held = self._rows.attempts[-1] if standing.attempt_id is not None and self._rows.attempts else None
        rank = Rank.CANCEL_REQUESTED if held else Rank.CANCEL_REQUESTED_WAITING
        actor = standing.cancel_actor or SYSTEM
        yield self._line(standing.cancel_us, *place, rank, "cancel_requested", actor, **told)
        if held is None:
            return
        about = {"attempt": held.id, "worker": held.worker}
        if standing.cancel_delivered_us is not None:
            at_us = standing.cancel_delivered_us
            yield self._line(at_us, *place, Rank.CANCEL_DELIVERED, "cancel_delivered", held.worker, **about)
        if held.ended_us is not None and held.state == AttemptState.CANCELLED:
            actor = held.actor or held.worker
            about["by"] = _stopped_by(held, actor)
            yield self._line(held.ended_us, *place, Rank.CANCEL_STOPPED, "cancel_stopped", actor, **about)

    def _explicit(self, event: EventRow) -> Iterator[Line]:
        fence, rank = self._placed(event)
        data = event.data or {}
        if event.type in ("postponed", "debounced"):
            yield from self._queued(data.get("queued_us"), event.generation, fence)
        actor = event.actor
        if actor == _SOME_WORKER:
            named = data.get("attempt")
            actor = next((row.worker for row in self._rows.attempts if row.id == named), actor)
        initiator = event.initiator or self._rows.initiator
        yield Line(event.at_us, event.generation, fence, rank, event.e, event.type, actor, initiator, data)

    def _placed(self, event: EventRow) -> tuple[int, int]:
        """The fence and rank of an explicit event. Neither depends on what is written later."""
        named = (event.data or {}).get("attempt")
        at_us, generation = event.at_us, event.generation
        if event.type in _OF_ATTEMPT:
            rank = Rank.AFTER_END if event.type == "late_result" else Rank.TOLD
            return self._fence(lambda row: row.id == named if named else row.leased_us <= at_us), rank
        if event.type in _AFTER_END:
            return self._fence(lambda row: row.generation <= generation and row.leased_us <= at_us), Rank.AFTER_END
        if event.type in _AGAIN:
            return self._fence(lambda row: row.generation < generation or row.leased_us < at_us), Rank.AFTER_END
        return self._fence(lambda row: row.leased_us < at_us), Rank.WAITED

    def _fence(self, before: Callable[[_Attempt], bool]) -> int:
        """The fence of the last attempt of which that holds."""
        return max((row.fence for row in self._rows.attempts if before(row)), default=0)


def _stopped_by(attempt: _Attempt, actor: str) -> str:
    """How a cancelled attempt came to its end."""
    if actor == SYSTEM:
        return "lease_or_deadline"
    return "killed" if attempt.error == NOT_STOPPED.type else "holder"
