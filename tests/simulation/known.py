"""What the witness and its accounts know of tasks and attempts, and of the commit that they look at."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from perdure.domain.states import UNFINISHED, TaskState
from simulation.observer import TaskRow


@dataclass
class Attempt:
    """One claim as the witness knows it. Instants are the store's."""

    id: str
    token: str
    worker: str
    leased_us: int
    ends_us: int
    deadline_us: int
    cancel_ends_us: int | None = None


@dataclass
class Known:
    """One task as the witness knows it."""

    number: int
    row: TaskRow
    state: TaskState | None = None
    generation: int = 0
    attempt: Attempt | None = None
    fence: int = 0
    ends: dict[int, str] = field(default_factory=dict)
    """How each generation ended."""
    reason: str | None = None
    """Of its last end."""
    result: bytes | None = None
    receipt: tuple[str, bytes] | None = None
    """The attempt and the result of a committed receipt."""
    cancel_answered: bool = False
    """Somebody was told that it is cancelled and never ran on."""
    removed: bool = False

    @property
    def open(self) -> bool:
        """Whether it has not ended."""
        return self.state in UNFINISHED


class Commit(NamedTuple):
    """A call that has committed, or was refused."""

    verb: str
    arguments: Sequence[Any]
    answer: Any
    now_us: int
    who: str
    """The process that called."""

    @property
    def refused(self) -> bool:
        """Whether the call as a whole was."""
        return isinstance(self.answer, BaseException)


class Step(NamedTuple):
    """One move of one task within a commit."""

    known: Known
    old: TaskState | None
    new: TaskState
    event: str | None
    """Of the lifecycle."""
    begins: bool
    """A new task, or a new generation of one."""
