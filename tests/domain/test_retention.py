"""How long what has ended is kept: what a kind says of an end, of all its ends, then the system of an end, of all."""

import pytest

from perdure.domain.retention import KindRetention, Retention
from perdure.domain.states import JOB_ENDED, JobState, TaskState

SYSTEM = Retention(100, {TaskState.FAILED: 7, TaskState.CANCELLED: 300})


@pytest.mark.parametrize(
    ("kind", "state", "kept"),
    [
        (None, TaskState.SUCCEEDED, 100),
        (None, TaskState.FAILED, 7),
        (KindRetention(), TaskState.FAILED, 7),
        (KindRetention(keep_us=5), TaskState.FAILED, 5),
        (KindRetention(keep_us=0), TaskState.SUCCEEDED, 0),
        (KindRetention(by_state={TaskState.FAILED: 9}), TaskState.FAILED, 9),
        (KindRetention(by_state={TaskState.FAILED: 9}), TaskState.SUCCEEDED, 100),
        (KindRetention(5, {TaskState.FAILED: 9}), TaskState.FAILED, 9),
        (KindRetention(5, {TaskState.FAILED: 9}), TaskState.CANCELLED, 5),
    ],
)
def test_the_nearest_word_counts(kind: KindRetention | None, state: TaskState, kept: int) -> None:
    assert SYSTEM.of_task(state, kind) == kept


@pytest.mark.parametrize("state", sorted(JOB_ENDED))
def test_a_job_is_kept_as_long_as_any_end_that_its_tasks_may_have_had(state: JobState) -> None:
    dead = Retention(100, {TaskState.DEAD_LETTERED: 900})
    assert dead.of_job(state) == (100 if state is JobState.SUCCEEDED else 900)
    assert SYSTEM.of_job(state) == 300
