"""What the model keeps: a task, its live attempt, a job, as they should stand."""

from dataclasses import dataclass, field

from perdure.domain.attempt import Hold
from perdure.domain.states import Reason, TaskState
from perdure.domain.task import Task

S = TaskState
FALLEN = frozenset({Reason.UPSTREAM_FAILED, Reason.TRIGGER_UNMET})
Rank = tuple[int, int]
"""A place in line: what comes back is in band 0, the rest in band 1; then the step in which it took its place."""


@dataclass
class MAttempt:
    """A live attempt."""

    hold: Hold
    worker: str
    ends_us: int
    fence: int
    started_us: int | None = None
    receipt: bool | None = None
    """Whether the committed receipt is a partial one; `None` without a receipt."""


@dataclass
class MTask:
    """A task as it should stand."""

    spec: Task
    created_us: int
    due_us: int
    expires_us: int | None
    state: TaskState = S.PENDING
    reason: Reason | None = None
    generation: int = 1
    failures: int = 0
    losses: int = 0
    fence: int = 0
    deadline_us: int | None = None
    attempt: MAttempt | None = None
    rank: Rank = (1, 0)
    cancel_ends_us: int | None = None
    cancel_reason: Reason | None = None
    job: "MJob | None" = None
    parents: dict[str, str] = field(default_factory=dict)
    """Edge policies by parent."""
    children: list[str] = field(default_factory=list)
    counted: dict[str, str] = field(default_factory=dict)
    """`open`, `good` or `bad` by parent, as this task knows them."""
    met: bool = False

    @property
    def blocked(self) -> bool:
        """Whether it waits for parents."""
        return self.state is S.PENDING and not self.met and "open" in self.counted.values()


@dataclass
class MJob:
    """A job as it should stand."""

    id: str
    members: list[str]
    started: bool = False
    stopping: str | None = None
