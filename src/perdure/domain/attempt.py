"""One claim of one task: the lease that its worker gets, and what the worker may say while it holds it."""

from typing import NamedTuple

from perdure.domain.task import Body


class Hold(NamedTuple):
    """What every write of an attempt names. Without all of it, nothing is changed."""

    organization: str
    task_id: str
    attempt_id: str
    token: str


class Lease(NamedTuple):
    """The right of one attempt to act, with all that its handler needs. Durations are microseconds from the claim."""

    hold: Hold
    kind: str
    queue: str
    priority: int
    payload: Body
    attempt: int
    """1-based: the handler's own failures so far, plus one."""
    fence: int
    generation: int
    lease_us: int
    timeout_us: int | None
    deadline_us: int
    """Until the execution deadline."""
    start_within_us: int | None
    """Until the TTL, which gates the start."""
    job_id: str | None
    name: str | None
    parents: int
    """How many tasks this one depended on."""
    retry: str | None
    options: str | None
    initiator: str
    checkpoint: str | None
    max_attempts: int


class Progress(NamedTuple):
    """Counters of a running task; a later report replaces an earlier one."""

    done: int
    total: int | None = None
    succeeded: int | None = None
    failed: int | None = None


class Part(NamedTuple):
    """A piece of a result. `sequence` counts from 1 without gaps; the same `key` and `sha256` again is a repeat."""

    sequence: int
    key: str
    """Unique within the task when `named`, else within the attempt."""
    named: bool
    sha256: str
    data: Body
    final: bool = False


class LogLine(NamedTuple):
    """A line that a handler logged. `sequence` grows within the attempt; what is not greater is a repeat."""

    sequence: int
    level: str
    message: str
    ago_us: int
    """How long ago it was logged, when this is sent."""
    dropped: int = 0
    """How many lines just before it are not kept."""


class Report(NamedTuple):
    """What a handler tells while it runs. Any report of an attempt says that its handler has begun."""

    hold: Hold
    progress: Progress | None = None
    phase: str | None = None
    part: Part | None = None
    checkpoint: str | None = None
    """JSON text kept across the attempts of one generation."""
    ran_us: int = 0
    """How long ago the handler began, when this is sent."""
    logs: tuple[LogLine, ...] = ()


class Renewal(NamedTuple):
    """Asks for another lease length. `started` says that the handler has begun."""

    hold: Hold
    started: bool
    delivered: bool = False
    """The worker has passed a cancel on to the handler."""
    ran_us: int = 0
    """How long ago the handler began, when this is sent."""
    told_us: int = 0
    """How long ago the handler was told of the cancel, when this is sent."""


PHASES = ("planning", "validating", "executing", "finalizing")
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
"""From the least severe on."""
CAPTURED_LEVELS = (*LOG_LEVELS, "off")
"""What may be the least severe line that is kept; `off`: none is."""
