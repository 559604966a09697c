"""`perdure job ...`: submit DAGs from files, run them, look at them, cancel and retry them."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from perdure.cli.options import (
    CursorOption,
    JobId,
    JobIds,
    JsonOption,
    LimitOption,
    OldestOption,
    StoreOption,
    TimeoutOption,
    WaitTimeoutOption,
    check_waits,
    finite,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Never

    from perdure.cli.session import Session
    from perdure.jobfile import JobFile
    from perdure.store.job_ledger import JobRetried
    from perdure.store.ledger import JobSubmitted
    from perdure.store.views import JobProgress, JobTaskView, JobView, Page

app = typer.Typer(
    help="Jobs: run, submit, list, show, wait, progress, gantt, cancel, retry.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

FileArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A job file: YAML, JSON or WfFormat.", show_default=False)
]
TimeScaleOption = Annotated[
    float,
    typer.Option(
        "--time-scale", min=0, callback=finite, help="Multiplies the seconds of sleeps and recorded run times."
    ),
]


@app.command("run")
def run(
    file: FileArgument,
    concurrency: Annotated[int, typer.Option(min=1, max=10_000, help="How many tasks run at once, in all.")] = 32,
    workers: Annotated[
        int, typer.Option(min=0, max=64, help="How many worker processes; 0 runs the tasks in this one.")
    ] = 0,
    time_scale: TimeScaleOption = 1.0,
    target: Annotated[
        str | None, typer.Option("--app", metavar="MODULE:APP", help="The app that has the kinds of the job.")
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Append a line for each start and end of a sleep to this file.")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the temporary store.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Run a job to its end, with progress and a summary. Without a store it runs on a temporary one."""
    from perdure.cli.job_run import Plan, run_job

    plan = Plan(file, concurrency, workers, time_scale, target, ledger, keep, store, json)
    raise typer.Exit(run_job(plan))


@app.command("submit")
def submit(
    file: FileArgument,
    time_scale: TimeScaleOption = 1.0,
    idempotency_key: Annotated[str | None, typer.Option(help="The same key again makes no second job.")] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end; exit code 1 if it fails.")] = False,
    wait_timeout: WaitTimeoutOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Submit a job for the workers of the store."""
    check_waits(wait, wait_timeout)
    from perdure.cli.output import write_id, write_json, write_note
    from perdure.cli.session import on_store
    from perdure.jobfile import read_job_file

    job = read_job_file(file, time_scale)
    if idempotency_key is not None:
        job.request.idempotency_key = idempotency_key

    def tell(submitted: "JobSubmitted") -> None:
        if json and not wait:
            write_json(submitted)
        elif not json:
            write_id(submitted.id)

    alone = not json and not wait
    submitted = on_store(store, lambda session: _send(session, job, tell, note=alone), create=True, quiet=json)
    for note in job.notes:
        write_note(f"note: {note}")
    if wait:
        _wait_for(submitted.id, store, wait_timeout, json)


def _wait_for(job_id: str, store: str | None, timeout: float | None, as_json: bool) -> "Never":
    from perdure.cli.job_wait import wait_for
    from perdure.errors import PerdureError

    try:
        code = wait_for(store, [job_id], timeout=timeout, as_json=as_json)
    except PerdureError as error:
        error.fields.setdefault("job_id", job_id)  # With --json nothing else has told it.
        raise
    raise typer.Exit(code)


async def _send(
    session: "Session", job: "JobFile", tell: "Callable[[JobSubmitted], None]", *, note: bool
) -> "JobSubmitted":
    """Submit what a file says and `tell` at once. Raises a `Refused` that points into it."""
    from perdure.cli.beside import beside_the_work
    from perdure.cli.job_wait import note_waiting
    from perdure.errors import Refused

    try:
        submitted = await session.operations.submit_job(job.request, session.principal)
    except Refused as refusal:
        raise job.placed(refusal) from None
    tell(submitted)
    if note:
        with beside_the_work("how it stands was not looked up"):
            await note_waiting(session, submitted.id)
    return submitted


@app.command("wait")
def wait(job_ids: JobIds, timeout: TimeoutOption = None, store: StoreOption = None, json: JsonOption = False) -> None:
    """Wait until jobs have ended. Exit code 1 if one failed or was cancelled, or if the time is over."""
    from perdure.cli.job_wait import wait_for
    from perdure.domain import ids

    raise typer.Exit(wait_for(store, ids.parse_all(job_ids, "job"), timeout=timeout, as_json=json))


@app.command("list")
def list_jobs(
    state: Annotated[list[str] | None, typer.Option(help="Only this state; may be repeated.")] = None,
    oldest: OldestOption = False,
    limit: LimitOption = 50,
    cursor: CursorOption = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """List jobs, newest first."""
    from perdure.cli.job_views import write_jobs
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store
    from perdure.cli.task import chosen
    from perdure.domain.states import JobState
    from perdure.store.sort import Sort

    states = [JobState(chosen(each, JobState, "state")) for each in state or ()]

    async def read(session: "Session") -> "Page":
        sort = Sort.OLDEST if oldest else Sort.NEWEST
        return await session.views.jobs(session.organization, states, limit, cursor, sort)

    page = on_store(store, read)
    if json:
        write_json({"jobs": page.rows, "cursor": page.cursor})
    else:
        write_jobs(page)


@app.command("show")
def show(
    job_id: JobId,
    path: Annotated[bool, typer.Option("--critical-path", help="Only the tasks of its critical path.")] = False,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show one job and its tasks; once it has ended, its critical path."""
    from perdure.cli.job_failures import failures_of
    from perdure.cli.job_views import write_critical_path, write_job
    from perdure.cli.output import plain, write_json
    from perdure.cli.session import on_store
    from perdure.domain import ids

    parsed = ids.parse(job_id, "job")

    async def read(session: "Session") -> "tuple[JobView, list[JobTaskView], list[str]]":
        job = await found(session, parsed)
        tasks = await session.views.job_tasks(session.organization, job.id)
        return job, tasks, [] if path or json else await failures_of(session, tasks)

    job, tasks, failures = on_store(store, read)
    if path:
        from perdure.engine.job_timeline import timeline_of

        timeline = timeline_of(job, tasks)
        critical = [each for each in timeline.tasks if each.critical]
        if json:
            write_json(plain(timeline) | {"tasks": plain(critical)})
        else:
            write_critical_path(timeline)
    elif json:
        write_json(plain(job) | {"tasks": plain(tasks)})
    else:
        write_job(job, tasks, failures)


@app.command("progress")
def progress(job_id: JobId, store: StoreOption = None, json: JsonOption = False) -> None:
    """Show how far a job is: its tasks by state, and the items that handlers told of."""
    from perdure.cli.job_views import write_progress
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store
    from perdure.domain import ids

    parsed = ids.parse(job_id, "job")

    async def read(session: "Session") -> "tuple[JobProgress, list[JobTaskView]]":
        await found(session, parsed)
        shown = await session.views.job_progress(session.organization, parsed)
        bad = shown is not None and shown.counts.get("failed", 0) > 0 and not json
        tasks = await session.views.job_tasks(session.organization, parsed) if bad else []
        return shown if shown is not None else no_job(parsed), tasks

    shown, tasks = on_store(store, read)
    if json:
        write_json(shown)
    else:
        write_progress(shown, tasks)


@app.command("gantt")
def gantt(
    job_id: JobId,
    width: Annotated[int, typer.Option(min=10, max=1_000, help="How many characters the whole time takes.")] = 60,
    limit: LimitOption = 200,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Show when each task of a job waited and ran, as bars over time; those of the critical path are marked."""
    from perdure.cli.gantt import write_gantt
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store
    from perdure.domain import ids
    from perdure.engine.job_timeline import read_timeline

    parsed = ids.parse(job_id, "job")
    timeline = on_store(store, lambda session: read_timeline(session.views, parsed, session.principal))
    if json:
        write_json(timeline)
    else:
        write_gantt(timeline, width, limit)


@app.command("retry")
def retry(job_id: JobId, store: StoreOption = None, json: JsonOption = False) -> None:
    """Run again what failed of a job, with all that was cancelled for it; what succeeded stays as it is."""
    from perdure.cli.output import counted, write_json
    from perdure.cli.session import on_store
    from perdure.domain import ids

    parsed = ids.parse(job_id, "job")

    async def again(session: "Session") -> "JobRetried":
        await found(session, parsed)
        return await session.operations.retry_job(parsed, session.principal)

    retried = on_store(store, again)
    if json:
        write_json({"id": parsed, "redriven": retried.redriven, "revived": retried.revived})
    else:
        also = f", and {counted(retried.revived, 'task')} cancelled for them" if retried.revived else ""
        sys.stdout.write(f"{parsed} runs again: {counted(retried.redriven, 'failed task')}{also}\n")


@app.command("cancel")
def cancel(
    job_id: JobId,
    text: Annotated[str | None, typer.Option("--reason", help="Told to everybody who sees the job.")] = None,
    store: StoreOption = None,
    json: JsonOption = False,
) -> None:
    """Cancel a job: nothing more of it begins, what runs is asked to stop. A job that has ended stays (exit code 2)."""
    from perdure.cli.beside import beside_the_work
    from perdure.cli.output import write_json
    from perdure.cli.session import on_store
    from perdure.domain import ids

    parsed = ids.parse(job_id, "job")

    async def request(session: "Session") -> "tuple[JobView, bool]":
        job = await found(session, parsed)
        done = await session.operations.cancel_job(job.id, session.principal, text)
        with beside_the_work("how it stands now was not looked up"):
            job = await found(session, parsed)
        return job, done

    job, done = on_store(store, request)
    if json:
        write_json({"id": job.id, "cancelled": done, "state": job.state})
    elif done:
        sys.stdout.write(f"{job.id} is being cancelled\n")
    else:
        before = "was cancelled before" if job.cancel is not None else "was not cancelled by this"
        sys.stdout.write(f"{job.id} {before}: it is {job.state}\n")
    if not done and job.cancel is None:
        raise typer.Exit(2)


async def found(session: "Session", job_id: str) -> "JobView":
    """The job of that id. Raises `NotFound`."""
    job = await session.views.job(session.organization, job_id)
    if job is None and await session.views.task(session.organization, job_id) is not None:
        from perdure.errors import NotFound

        raise NotFound(f"{job_id} is a task, not a job: see `perdure task`", what="job", id=job_id)
    return job if job is not None else no_job(job_id)


def no_job(job_id: str) -> "Never":
    """Raises `NotFound`."""
    from perdure.errors import NotFound

    raise NotFound(f"there is no job {job_id} in this store", what="job", id=job_id)
