"""The part of the ledger that changes jobs while they run or once they have ended. The rules are those of `Ledger`."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, Protocol

from perdure.domain.attempt import Hold
from perdure.domain.task import FailurePolicy, Task
from perdure.errors import PerdureError


class Link(NamedTuple):
    """`child` waits for `parent`: names of tasks in one job. `policy` is that of `domain.task.Edge`."""

    parent: str
    child: str
    policy: Literal["fail", "continue"]


class Grower(NamedTuple):
    """What a running attempt needs to know before it adds tasks to its job."""

    job_id: str
    policy: FailurePolicy
    principal: str
    """Who submitted its task; what it adds is theirs too."""
    initiator: str


class Growth(NamedTuple):
    """Tasks that a running attempt adds to its own job, all of them or none.

    Each has a name and a `request_hash`, and waits for its parents in `links`. A link between two tasks of which only
    the parent is new lets a task that the job has already wait for it too.
    """

    hold: Hold
    tasks: tuple[Task, ...]
    links: tuple[Link, ...]
    ran_us: int = 0
    """How long ago the handler began."""


class Grown(NamedTuple):
    """They are there. `task_ids` maps the names that were asked for to ids; `added` says how many are new by this."""

    job_id: str
    task_ids: dict[str, str]
    added: int


class JobRetried(NamedTuple):
    """How many failed tasks run again, and how many that were cancelled for them."""

    redriven: int
    revived: int


class JobLedger(Protocol):
    """The verbs of jobs."""

    async def grower(self, hold: Hold) -> Grower:
        """Whose job an attempt may add tasks to. Reads only. `LeaseLost`; `Conflict` where its task has no job."""

    async def grow(self, growths: Sequence[Growth]) -> list[Grown | PerdureError]:
        """Add tasks to the jobs of live attempts, `leased` -> `running`; each growth whole or not at all.

        A name that the job has already by the same request (`request_hash`) is there: nothing is added for it, so that
        a repeated call, or another attempt of the same task, adds nothing twice. By another request, or from the job's
        submit, it is refused (`Conflict`).

        New tasks may wait for tasks of the job in any state, each of which counts as it stands: they begin `queued`, or
        `pending` while a parent is open or they are not due, or end at once (`upstream_failed`, `trigger_unmet`). A
        task that shall wait for new ones has to be `pending` and a child of the attempt's own task, so that it cannot
        have been let go yet (`Conflict`).

        `LeaseLost` where the attempt is not live; `Conflict` where its task or job is being cancelled, or there is no
        job; `Invalid` for unknown names, circles and what is beyond the limits of a job; `Overloaded` as in `submit`.
        """

    async def retry_job(self, organization: str, job_id: str, actor: str) -> JobRetried:
        """Run again what failed of a job, as `redrive` does: `failed`, `dead_lettered`, `expired`, and with them what
        was cancelled for them (`upstream_failed`, `trigger_unmet`) -> `queued`, or `pending` while a parent is open.

        Where a failure had stopped the whole job, all that was cancelled by that runs again too. One transaction.

        `NotFound`; `Conflict` where nothing of the job failed or it is being cancelled; `Redacted`.
        """
