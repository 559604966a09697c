"""Bodies about doing something to all tasks that a filter lets through."""

from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from perdure.domain import limits
from perdure.domain.states import Reason
from perdure.engine.act_on_matching import STEP_DEFAULT_TASKS
from perdure.wire import shapes
from perdure.wire.shapes import Id


class MatchingTasks(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which tasks, by what all of them have; a list means any of its values.

    At most `limit` are dealt with in one request: while the answer has a `cursor`, send the same with it. `dry_run`:
    only count them.
    """

    kinds: list[str] = []
    queues: list[str] = []
    labels: shapes.Labels = msgspec.field(default_factory=dict)
    job: Id | None = None
    submitters: list[str] = []
    limit: shapes.Limit = STEP_DEFAULT_TASKS
    cursor: shapes.Cursor | None = None
    dry_run: bool = False


class CancelMatching(MatchingTasks, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which tasks shall not (go on to) run, at least by one of these; `reason` is told to everybody who sees them."""

    reason: shapes.Text | None = None


class MatchingDeadLetters(MatchingTasks, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which dead letters. Nothing said means all."""

    reasons: list[Reason] = []
    ended_from: datetime | None = None
    """Only what ended at this instant or later."""
    ended_before: datetime | None = None


class RequeueMatching(MatchingDeadLetters, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which dead letters run again; with a `rate`, no more than so many of one request can be claimed in a second."""

    rate: Annotated[int, Meta(ge=1, le=limits.SWEEP_MAX_TASKS)] | None = None


class PurgeMatching(MatchingDeadLetters, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which dead letters are removed; `discarded` says whether only those that were discarded, or only the others."""

    discarded: bool | None = None


class RefusedTask(msgspec.Struct, kw_only=True, frozen=True):
    """A task that was matched, and moved before it could be done to it."""

    id: Id
    problem: dict[str, Any]


class MatchingStep(msgspec.Struct, kw_only=True, frozen=True):
    """What one request did: how many tasks matched, and what became of them. Go on while there is a `cursor`."""

    matched: int
    counts: dict[str, int]
    refused: list[RefusedTask]
    cursor: str | None = None
