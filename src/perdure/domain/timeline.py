"""What the run of a job was like: how long it took, what it did meanwhile, and which chain of tasks decided that."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from perdure.domain.job import critical_path
from perdure.domain.limits import SECOND_US


class Span(NamedTuple):
    """When one task of a job was held for the last time, in microseconds, and what it depended on."""

    parents: tuple[str, ...]
    leased_us: int | None
    finished_us: int | None


class Timeline(NamedTuple):
    """The measures of a run, in seconds."""

    makespan: float
    """From the submit to the last end so far."""
    work: float
    """All run times together."""
    critical_path: float
    """The run times along the heaviest chain of dependencies: no number of workers is faster."""
    critical_tasks: tuple[str, ...]
    """The names along that chain, first to last."""
    parallelism: float
    """How many tasks ran at once on average."""


def timeline(spans: Mapping[str, Span], created_us: int) -> Timeline:
    """The measures of a job that was submitted at `created_us`, from its tasks by name."""
    weights = {name: run_seconds(span.leased_us, span.finished_us) for name, span in spans.items()}
    path_weight, path = critical_path({name: span.parents for name, span in spans.items()}, weights)
    makespan = makespan_seconds(created_us, (span.finished_us for span in spans.values()))
    work = sum(weights.values())
    return Timeline(makespan, work, path_weight, tuple(path), work / makespan if makespan > 0 else 0.0)


def makespan_seconds(created_us: int, finished_us: Iterable[int | None]) -> float:
    """From the submit to the last end so far."""
    last_us = max((each for each in finished_us if each is not None), default=created_us)
    return (last_us - created_us) / SECOND_US


def run_seconds(leased_us: int | None, finished_us: int | None) -> float:
    """How long the last attempt was held; a task that never ran took no time.

    The start of the handler would be the wrong beginning: workers tell of it in passing, up to half a second late or
    never.
    """
    if leased_us is None or finished_us is None:
        return 0.0
    return max(0, finished_us - leased_us) / SECOND_US
