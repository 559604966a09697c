"""What a run was like, set against what its DAG allows."""

import pytest

from perdure.domain.states import JobState, TaskState
from perdure.jobfile import report
from perdure.jobfile.report import Waits
from perdure.store.views import JobTaskView, JobView

SECOND_US = 1_000_000


def job(total: int) -> JobView:
    return JobView(
        id="j", organization="default", name="n", state=JobState.SUCCEEDED, policy="fail", total=total, open=0,
        counts={}, created_us=0, principal="p", initiator="p",
    )  # fmt: skip


def ran(name: str, began: float, ended: float, *parents: str) -> JobTaskView:
    return JobTaskView(
        id=name, name=name, kind="k", state=TaskState.SUCCEEDED, parents=parents,
        leased_us=int(began * SECOND_US), started_us=None, finished_us=int(ended * SECOND_US),
    )  # fmt: skip


def test_a_diamond_on_two_slots() -> None:
    tasks = [ran("a", 0, 1, *()), ran("b", 1, 3, "a"), ran("c", 1, 2, "a"), ran("d", 3, 4, "b", "c")]
    measured = report(job(4), tasks, concurrency=2)
    assert measured.makespan == 4
    assert measured.critical_path == 4
    assert measured.critical_tasks == ("a", "b", "d")
    assert measured.work == 5
    assert measured.ideal == 4
    assert measured.ratio == 1
    assert measured.parallelism == pytest.approx(1.25)
    assert measured.overhead_ms_per_task == 0
    assert measured.weights == "measured"


def test_with_known_run_times_what_the_system_adds_is_overhead() -> None:
    tasks = [ran("a", 0.1, 1.2), ran("b", 1.3, 2.5, "a")]
    measured = report(job(2), tasks, concurrency=4, seconds={"a": 1.0, "b": 1.0})
    assert measured.weights == "known"
    assert measured.ideal == 2
    assert measured.ratio == pytest.approx(1.25)
    assert measured.overhead_ms_per_task == pytest.approx(250)


def test_work_bounds_the_ideal_when_slots_are_few() -> None:
    tasks = [ran(str(n), n, n + 1) for n in range(4)]
    assert report(job(4), tasks, concurrency=1).ideal == 4


def test_tasks_that_never_ran_take_no_time() -> None:
    cancelled = JobTaskView(id="b", name="b", kind="k", state=TaskState.CANCELLED, parents=("a",), finished_us=0)
    measured = report(job(2), [ran("a", 0, 0), cancelled], concurrency=1)
    assert measured.counts == {"succeeded": 1, "cancelled": 1}
    assert measured.ratio is None
    assert report(job(2), [ran("a", 0, 0), cancelled], 1, seconds={"a": 0.0, "b": 9.0}).weights == "measured"
    assert measured.parallelism == 0


def test_waits_that_were_asked_for_are_not_the_systems_time() -> None:
    tasks = [ran("a", 0, 1), ran("b", 10, 12, "a"), ran("c", 5, 6, "a")]
    plain = report(job(3), tasks, concurrency=2)
    assert (plain.critical_path, plain.asked, plain.overhead_ms_per_task) == (3, 0, 3000)
    delayed = report(job(3), tasks, 2, waits=Waits({"b": 9.0}, {"c": 3.5}))
    assert (delayed.critical_path, delayed.critical_tasks, delayed.asked) == (11, ("b",), 9)
    assert (delayed.ideal, delayed.bound) == (11, 11)
    assert delayed.overhead_ms_per_task == pytest.approx(1000 / 3)
    tried = report(job(3), tasks, 2, waits=Waits({}, {"b": 8.0}))
    assert (tried.critical_path, tried.critical_tasks, tried.asked) == (11, ("a", "b"), 8)
    assert tried.work == 4
