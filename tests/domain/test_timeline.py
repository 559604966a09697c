"""The measures of a job's run: makespan, work, critical path, parallelism."""

from perdure.domain.limits import SECOND_US
from perdure.domain.timeline import Span, Timeline, timeline


def span(*parents: str, leased: float | None = None, finished: float | None = None) -> Span:
    """A span in seconds."""
    return Span(
        parents,
        None if leased is None else round(leased * SECOND_US),
        None if finished is None else round(finished * SECOND_US),
    )


def test_the_heaviest_chain_is_the_critical_path() -> None:
    spans = {
        "a": span(leased=1, finished=3),
        "b": span("a", leased=3, finished=4),
        "c": span("a", leased=3, finished=8),
        "d": span("b", "c", leased=9, finished=10),
    }
    assert timeline(spans, 0) == Timeline(10.0, 9.0, 8.0, ("a", "c", "d"), 0.9)


def test_what_never_ran_or_has_not_ended_took_no_time() -> None:
    spans = {"a": span(leased=1, finished=3), "b": span("a", leased=3), "c": span("a")}
    measured = timeline(spans, SECOND_US)
    assert (measured.makespan, measured.work, measured.critical_path) == (2.0, 2.0, 2.0)
    assert measured.critical_tasks[0] == "a"


def test_a_job_of_which_nothing_has_run_has_no_measures() -> None:
    measured = timeline({"a": span()}, 5)
    assert (measured.makespan, measured.work, measured.critical_path, measured.parallelism) == (0.0, 0.0, 0.0, 0.0)
