"""What the run of a job was like, set against the best that its DAG and its concurrency allow."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from perdure.domain.job import critical_path
from perdure.domain.states import TaskState
from perdure.domain.timeline import makespan_seconds, run_seconds
from perdure.jobfile.bound import lower_bound
from perdure.store.views import JobTaskView, JobView


class Waits(NamedTuple):
    """What tasks waited for because somebody said so, in seconds by name. It is none of the system's time."""

    not_before: Mapping[str, float]
    """From the submission on."""
    tried: Mapping[str, float]
    """From the first attempt to the last: those that failed, and the waits of the retry policy."""


NO_WAITS = Waits({}, {})


class RunReport(msgspec.Struct, frozen=True, kw_only=True):
    """The measures of one run. Seconds, unless the name says otherwise."""

    job_id: str
    name: str
    state: str
    tasks: int
    counts: dict[str, int]
    """How many tasks ended in which state."""
    makespan: float
    """From the submission to the last end, by the store's clock."""
    work: float
    """All run times together."""
    critical_path: float
    """The run times along the heaviest chain of dependencies, with what was asked to be waited for: no number of
    workers is faster.
    """
    asked: float = 0.0
    """The part of it that is no run time of a last attempt: delays, failed attempts, and waits between attempts."""
    critical_tasks: tuple[str, ...]
    """The names along that chain, first to last."""
    concurrency: int
    """How many tasks could run at once."""
    ideal: float
    """The greater of `critical_path` and `work / concurrency`: the makespan if nothing but the tasks took time."""
    bound: float
    """The makespan that no order of the ready tasks beats at that concurrency: at least the ideal, which many DAGs
    cannot reach (a wide level between two long tasks).
    """
    ratio: float | None
    """`makespan / ideal`; `None` when the ideal is nothing."""
    parallelism: float
    """How many tasks ran at once on average: measured run times over the makespan."""
    overhead_ms_per_task: float
    """What the makespan has over the bound, shared among the tasks, in milliseconds."""
    weights: Literal["known", "measured"]
    """Whether `work` and `critical_path` are of the run times that the file tells, or of those that were measured."""


def report(
    job: JobView,
    tasks: Sequence[JobTaskView],
    concurrency: int,
    seconds: Mapping[str, float] | None = None,
    waits: Waits = NO_WAITS,
) -> RunReport:
    """The measures of a job that has ended. `seconds` are the known run times by task name, if they are known.

    They are believed only where every task succeeded: one that failed or never ran did not take its time.
    """
    measured = {task.name: run_seconds(task.leased_us, task.finished_us) for task in tasks}
    known = seconds is not None and all(_ran_whole(task) and task.name in seconds for task in tasks)
    weights = {name: seconds[name] for name in measured} if known and seconds is not None else measured
    parents = {task.name: task.parents for task in tasks}
    tried = {name: weights[name] + waits.tried.get(name, 0.0) for name in weights}
    path_weight, path = critical_path(parents, tried, waits.not_before)
    bound = max(path_weight, lower_bound(parents, weights, concurrency))
    work = sum(weights.values())
    ideal = max(path_weight, work / concurrency)
    makespan = makespan_seconds(job.created_us, (task.finished_us for task in tasks))
    return RunReport(
        job_id=job.id,
        name=job.name,
        state=job.state.value,
        tasks=len(tasks),
        counts=dict(Counter(task.state.value for task in tasks)),
        makespan=makespan,
        work=work,
        critical_path=path_weight,
        asked=path_weight - sum(weights[name] for name in path),
        critical_tasks=tuple(path),
        concurrency=concurrency,
        ideal=ideal,
        bound=bound,
        ratio=makespan / ideal if ideal > 0 else None,
        parallelism=sum(measured.values()) / makespan if makespan > 0 else 0.0,
        overhead_ms_per_task=1000 * (makespan - bound) / max(1, len(tasks)),
        weights="known" if known else "measured",
    )


def _ran_whole(task: JobTaskView) -> bool:
    return task.state is TaskState.SUCCEEDED
