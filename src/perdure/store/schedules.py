"""The protocol of schedules: how each stands, and the one transaction in which its instants make tasks and jobs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from perdure.domain import limits
from perdure.domain.schedule import Cause, FireOutcome, Overlap, SkipReason, Stretch
from perdure.domain.task import Job, Task
from perdure.errors import PerdureError


class Schedule(NamedTuple):
    """A schedule: its document, and how it stands."""

    organization: str
    name: str
    version: int
    """Of the document."""
    document: str
    """JSON."""
    actor: str
    """Who put the document."""
    updated_us: int
    anchor_us: int
    """From when even intervals are counted."""
    next_us: int | None
    """The first instant that nothing was decided about, worked out from this version; `None` when there is none."""
    look_us: int | None
    """When something is to come of it; `None` while nothing is, or it is paused."""
    waiting_us: int | None
    """An instant that waits for the end of what an earlier one made."""
    paused: bool
    paused_by: str | None
    paused_us: int | None
    last_us: int | None
    """The last instant that something was decided about, and what."""
    last_outcome: FireOutcome | None
    last_reason: SkipReason | None
    last_task_id: str | None
    last_job_id: str | None


class Seen(NamedTuple):
    """How a schedule stood when something was worked out for it."""

    version: int
    next_us: int | None
    paused: bool = False


class Standing(NamedTuple):
    """How a schedule is to stand."""

    anchor_us: int
    next_us: int | None
    look_us: int | None


class Due(NamedTuple):
    """Schedules to be looked at now, when the next one after them is, and the store's time."""

    schedules: list[Schedule]
    next_us: int | None
    now_us: int


class Firing(NamedTuple):
    """What is to come of one schedule."""

    organization: str
    name: str
    seen: Seen
    """It is taken only while it stands so, and unless it is paused, only when it is to be looked at."""
    skipped: Sequence[Stretch]
    due: Sequence[int]
    """Instants that shall make something, in order."""
    works: Mapping[int, Task | Job]
    """What they make. An instant without one is skipped if the overlap policy would let it fire."""
    refusals: Mapping[int, str]
    """Why there is nothing for an instant to make."""
    overlap: Overlap
    next_us: int | None
    look_us: int | None
    waiting: Task | Job | None = None
    """What the instant that waits makes, if its turn has come."""
    waiting_refusal: str | None = None
    resumed: bool = False
    """It is paused no more afterwards."""
    grace_us: int = limits.CANCEL_GRACE_DEFAULT_US
    """How long holders have to stop where open work is cancelled."""


class Fired(NamedTuple):
    """What came of a firing. Not `taken`: it stood otherwise or somebody else was moving it; nothing was changed."""

    taken: bool
    made: Sequence[str] = ()
    """Ids of tasks and jobs."""
    skipped: int = 0
    """How many instants."""


class Asked(NamedTuple):
    """Instants that somebody asked for, with what each makes, whatever the overlap policy says."""

    organization: str
    name: str
    cause: Cause
    works: Sequence[tuple[int, Task | Job]]


class Made(NamedTuple):
    """What came of one instant that was asked for: the ids of what it made, now or before, or why it made nothing."""

    instant_us: int
    task_id: str | None
    job_id: str | None
    replayed: bool
    """It had made something before, or it waits."""
    error: PerdureError | None = None


class Fire(NamedTuple):
    """What is kept of an instant, or of several that follow each other and were skipped for one reason."""

    first_us: int
    last_us: int
    instants: int
    cause: Cause
    outcome: FireOutcome
    reason: SkipReason | None
    text: str | None
    task_id: str | None
    job_id: str | None
    at_us: int
    """When this was decided."""


class Schedules(Protocol):
    """Schedules by (organization, name). Each call is one transaction; documents are definitions of type `schedule`."""

    async def get(self, organization: str, name: str) -> Schedule | None:
        """The schedule, or `None`."""

    async def page(self, organization: str, after: str, limit: int, of_set: str | None = None) -> list[Schedule]:
        """Schedules by name, those after one; with `of_set`, only those whose document names that set."""

    async def put(
        self,
        organization: str,
        name: str,
        document: str,
        actor: str,
        *,
        seen: Seen | None,
        standing: Standing,
        skipped: Sequence[Stretch] = (),
        drop_waiting: bool = False,
    ) -> Schedule:
        """Store a document, and how the schedule stands by it. A paused one stays paused.

        Only over what was `seen` (`None`: only if there is none), and only while a next instant that is another than
        before is still to come: else `Conflict`. `skipped` are instants that had come
        by the old document; with `drop_waiting`, one that waits is skipped too (`changed`).
        """

    async def delete(self, organization: str, name: str, actor: str, expected: int | None = None) -> bool:
        """Remove a schedule; false when there was none. With `expected`, only that version: else `Conflict`.

        What it made stays, and so does what came of its instants, until retention.
        """

    async def pause(self, organization: str, name: str, actor: str) -> bool:
        """Let nothing come of a schedule; false when there is none. It is resumed by a `Firing`."""

    async def due(self, limit: int) -> Due:
        """Schedules whose time to be looked at has come, the longest waiting first. Reads only."""

    async def fire(self, firings: Sequence[Firing]) -> list[Fired]:
        """Decide about instants: skip, let wait, or make tasks and jobs, and move the schedule on, in one transaction.

        An instant makes one thing at most, whoever asks how often. One that made something before makes nothing more.
        What cannot be submitted (`Overloaded`, for one) is skipped with the reason.
        """

    async def ask(self, asked: Asked) -> list[Made]:
        """Let instants make something that somebody asked for; schedule and policy are not looked at."""

    async def fires(self, organization: str, name: str, before: tuple[int, str] | None, limit: int) -> list[Fire]:
        """What came of the instants of a schedule, latest first: those after a row by its (instant, outcome)."""
