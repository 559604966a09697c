"""Jobs and their runs as people read them."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure.cli.output import shown_instant, shown_seconds, write_facts, write_line, write_note, write_table

if TYPE_CHECKING:
    from perdure.engine.job_timeline import JobTimeline
    from perdure.jobfile import RunReport
    from perdure.store.views import JobProgress, JobTaskView, JobView, Page

SHOWN_PATH = 6
"""How many names of a critical path are written out."""


def write_jobs(page: "Page") -> None:
    """A page of jobs, and how to see the next one."""
    write_table(
        ("ID", "STATE", "NAME", "TASKS", "OPEN", "CREATED", "FINISHED"),
        [
            (
                job.id,
                job.state,
                job.name,
                job.total,
                job.open,
                shown_instant(job.created_us),
                shown_instant(job.finished_us),
            )
            for job in page.rows
        ],
        "no jobs",
    )
    if page.cursor is not None:
        write_note(f"more with --cursor {page.cursor}")


def write_job(job: "JobView", tasks: "Sequence[JobTaskView]", failures: Sequence[str] = ()) -> None:
    """One job and its tasks, with why some of them failed."""
    write_facts(
        [
            ("id", job.id),
            ("name", job.name),
            ("state", job.state),
            ("on failure", job.policy),
            ("tasks", f"{job.total}, {job.open} open: {shown_counts(Counter(str(task.state) for task in tasks))}"),
            ("created", f"{shown_instant(job.created_us)} by {job.principal}"),
            ("started", shown_instant(job.started_us)),
            ("failing since", shown_instant(job.failing_since_us)),
            ("finished", shown_instant(job.finished_us)),
            ("cancel", _cancel(job)),
            *_path_facts(job, tasks),
        ]
    )
    write_line("")
    write_table(
        ("TASK", "STATE", "KIND", "ID", "STARTED", "RAN"),
        [
            (
                task.name,
                f"{task.state} ({task.reason})" if task.reason is not None else task.state,
                task.kind,
                task.id,
                shown_instant(task.leased_us),
                _ran(task),
            )
            for task in tasks
        ],
        "no tasks",
    )
    if failures:
        write_line("")
    for failure in failures:
        write_line(failure)


def write_progress(progress: "JobProgress", tasks: "Sequence[JobTaskView]" = ()) -> None:
    """How far a job is. By the states of its `tasks` where they are given: its counters tell each bad end as failed."""
    counts = dict(Counter(str(task.state) for task in tasks)) or progress.counts
    share = f" ({progress.ended / progress.total:.0%})" if progress.total else ""
    items = None
    if progress.items_done is not None:
        items = f"{progress.items_done} done" + (f" of {progress.items_total}" if progress.items_total else "")
    write_facts(
        [
            ("id", progress.id),
            ("state", progress.state),
            ("tasks", f"{progress.ended} of {progress.total} ended{share}: {shown_counts(counts)}"),
            ("items", items),
            ("started", shown_instant(progress.started_us)),
            ("failing since", shown_instant(progress.failing_since_us)),
            ("finished", shown_instant(progress.finished_us)),
        ]
    )


def write_critical_path(timeline: "JobTimeline") -> None:
    """The chain of tasks that decided how long a job took."""
    write_facts(
        [
            ("id", timeline.id),
            ("name", timeline.name),
            ("state", timeline.state),
            ("makespan", shown_seconds(timeline.makespan)),
            ("critical path", f"{shown_seconds(timeline.critical_path)} in {len(timeline.critical_tasks)} tasks"),
            ("parallelism", f"{timeline.parallelism:.1f} tasks at once on average"),
        ]
    )
    write_line("")
    by_name = {each.name: each for each in timeline.tasks}
    write_table(
        ("TASK", "STATE", "KIND", "ID", "STARTED", "WAITED", "RAN"),
        [
            (
                each.name,
                each.state,
                each.kind,
                each.id,
                shown_instant(each.leased_us),
                shown_seconds(each.waited),
                shown_seconds(each.ran),
            )
            for each in (by_name[name] for name in timeline.critical_tasks)
        ],
        "no tasks",
    )


def write_report(report: "RunReport") -> None:
    """What a run was like."""
    by = "known" if report.weights == "known" else "measured"
    write_facts(
        [
            ("job", f"{report.name} ({report.job_id})"),
            ("state", f"{report.state}: {shown_counts(report.counts)}"),
            ("makespan", shown_seconds(report.makespan)),
            ("ideal", f"{shown_seconds(report.ideal)} at concurrency {report.concurrency}, by {by} run times"),
            ("bound", f"{shown_seconds(report.bound)}: no order of the ready tasks is faster"),
            ("ratio", f"{report.ratio:.3f} x ideal" if report.ratio is not None else None),
            ("critical path", f"{shown_seconds(report.critical_path)}: {shown_path(report.critical_tasks)}"),
            ("asked", f"{shown_seconds(report.asked)} of it are delays and retries" if report.asked else None),
            ("work", f"{shown_seconds(report.work)} in {report.tasks} tasks"),
            ("parallelism", f"{report.parallelism:.1f} tasks at once on average"),
            ("overhead", f"{report.overhead_ms_per_task:.2f} ms a task"),
        ]
    )


def shown_counts(counts: dict[str, int]) -> str:
    """`40 succeeded, 2 failed`."""
    return ", ".join(f"{number} {state}" for state, number in sorted(counts.items()) if number) or "none"


def shown_path(names: Sequence[str]) -> str:
    """A path from first to last, its middle left out when it is long."""
    if len(names) > SHOWN_PATH:
        half = SHOWN_PATH // 2
        names = [*names[:half], f"... {len(names) - 2 * half} more ...", *names[-half:]]
    return " -> ".join(names)


def _path_facts(job: "JobView", tasks: "Sequence[JobTaskView]") -> list[tuple[str, object]]:
    if job.finished_us is None:
        return []
    from perdure.jobfile import report

    measured = report(job, tasks, concurrency=max(1, len(tasks)))
    path = f"{shown_seconds(measured.critical_path)}: {shown_path(measured.critical_tasks)}"
    return [("took", shown_seconds(measured.makespan)), ("critical path", path)]


def _cancel(job: "JobView") -> str | None:
    if job.cancel is None:
        return None
    text = f": {job.cancel.text}" if job.cancel.text else ""
    return f"asked {shown_instant(job.cancel.at_us)} by {job.cancel.actor}{text}"


def _ran(task: "JobTaskView") -> str:
    began_us = task.leased_us
    if began_us is None or task.finished_us is None:
        return "-"
    return shown_seconds((task.finished_us - began_us) / 1_000_000)
