"""How long what has ended is kept: one length for everything, others for some ends, and what a kind says of its own."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from perdure.domain.states import ENDED, JobState, TaskState

NOTHING: Mapping[TaskState, int] = MappingProxyType({})

_STATES_OF_JOBS: Mapping[JobState, frozenset[TaskState]] = MappingProxyType(
    {
        JobState.SUCCEEDED: frozenset({TaskState.SUCCEEDED, TaskState.CANCELLED}),
        JobState.PARTIALLY_SUCCEEDED: ENDED,
        JobState.FAILED: ENDED,
        JobState.CANCELLED: ENDED,
    }
)
"""In which states the tasks of an ended job may be."""


class KindRetention(NamedTuple):
    """What a kind says about its own tasks. `None` and a state that is not named leave it to the system."""

    keep_us: int | None = None
    by_state: Mapping[TaskState, int] = NOTHING
    result_us: int | None = None
    """How long results are kept, where that is shorter than their tasks."""


class Retention(NamedTuple):
    """What has ended is kept for `keep_us` after its end, unless its end state says otherwise."""

    keep_us: int
    by_state: Mapping[TaskState, int] = NOTHING

    def of_task(self, state: TaskState, kind: KindRetention | None = None) -> int:
        """How long a task without a job is kept: what its kind says of that end, of all ends, else the system."""
        if kind is not None:
            own = kind.by_state.get(state, kind.keep_us)
            if own is not None:
                return own
        return self.by_state.get(state, self.keep_us)

    def of_job(self, state: JobState) -> int:
        """How long a job is kept, which goes whole: as long as any of the ends that its tasks may have had."""
        return max(self.of_task(each) for each in _STATES_OF_JOBS[state])
