"""Running a job from a file to its end, on workers of this command."""

import asyncio
import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from perdure.builtin import SLEEP_KIND
from perdure.builtin.effect_ledger import EFFECT_LEDGER
from perdure.cli.job_failures import failures_of
from perdure.cli.job_views import write_report
from perdure.cli.output import plain, write_json, write_line, write_note
from perdure.cli.problems import FAILED, SUCCEEDED
from perdure.cli.session import Session, settings_for
from perdure.cli.task_wait import watched
from perdure.cli.worker_processes import WorkerProcesses, bare_errors, worker_command
from perdure.cli.working import the_app
from perdure.domain.limits import CONCURRENCY_MAX, LIST_MAX_ROWS
from perdure.domain.policy import DEFAULT_QUEUE
from perdure.domain.states import GOOD_JOB_ENDS, JOB_ENDED
from perdure.engine.requests import Principal
from perdure.errors import Invalid, Refused, WaitTimedOut
from perdure.jobfile import JobFile, RunReport, read_job_file, report
from perdure.jobfile.report import Waits
from perdure.settings import variable
from perdure.store.views import TaskFilter

if TYPE_CHECKING:
    from perdure.app import App
    from perdure.app.running import Working
    from perdure.store.views import JobView

LOOK_EVERY = 0.25
"""Seconds between two looks at the job."""
STARTED_EVERY = 0.02
"""Seconds between two looks for workers that are starting."""
START_SECONDS = 30.0
"""How long workers may take to register."""
TRIED_MAX = 1_000
"""Of so many tasks that were tried again it is read how long that took: one after the other, after the run."""
STORE_VARIABLE = variable("store")


class Plan(NamedTuple):
    """What `perdure job run` was asked for."""

    file: Path
    concurrency: int
    workers: int
    time_scale: float
    target: str | None
    ledger: Path | None
    keep: bool
    store: str | None
    as_json: bool


class Run(NamedTuple):
    """A job that has ended, and why some of its tasks failed."""

    report: RunReport
    failures: list[str]


def run_job(plan: Plan) -> int:
    """Run the job of the plan's file, tell how it went, and return the exit code."""
    job_file = read_job_file(plan.file, plan.time_scale)
    for note in job_file.notes:
        write_note(f"note: {note}")
    if plan.ledger is not None:
        _name_sleeps(job_file)
    shares = _shares(plan.concurrency, plan.workers)
    with _store(plan) as store, _ledger(plan.ledger):
        run = asyncio.run(_run(plan, job_file, store, shares))
    if plan.as_json:
        write_json(plain(run.report) | {"notes": job_file.notes, "failures": run.failures})
    else:
        write_report(run.report)
        for failure in run.failures:
            write_line(failure)
    return SUCCEEDED if run.report.state in GOOD_JOB_ENDS else FAILED


@contextlib.contextmanager
def _store(plan: Plan) -> Iterator[str]:
    """The store to run on: the one that was named, or a temporary one. The environment is put back afterwards."""
    before = os.environ.get(STORE_VARIABLE)
    try:
        if plan.store is not None:
            yield plan.store
        else:
            with _temporary_store(plan) as store:
                yield store
    finally:
        if before is not None:
            os.environ[STORE_VARIABLE] = before
        else:
            os.environ.pop(STORE_VARIABLE, None)


@contextlib.contextmanager
def _temporary_store(plan: Plan) -> Iterator[str]:
    folder = tempfile.mkdtemp(prefix="perdure-job-")
    store = str(Path(folder) / "job.db")
    write_note(f"running on a temporary store, {store}{', which is kept' if plan.keep else ''}")
    try:
        yield store
    finally:
        if not plan.keep:
            shutil.rmtree(folder, ignore_errors=True)


def _name_sleeps(job_file: JobFile) -> None:
    """Have each sleep know its name, for the effect ledger."""
    for task in job_file.request.tasks:
        if task.kind == SLEEP_KIND and isinstance(task.payload, dict):
            task.payload = {**task.payload, "name": task.name}


@contextlib.contextmanager
def _ledger(path: Path | None) -> Iterator[None]:
    """Have sleeps write to the effect ledger, here and in worker processes."""
    before = os.environ.get(EFFECT_LEDGER)
    if path is not None:
        os.environ[EFFECT_LEDGER] = str(path.absolute())
    try:
        yield
    finally:
        if before is not None:
            os.environ[EFFECT_LEDGER] = before
        elif path is not None:
            del os.environ[EFFECT_LEDGER]


async def _run(plan: Plan, job_file: JobFile, store: str, shares: list[int]) -> Run:
    said_by = "PERDURE_STORE or --store" if plan.store is not None else "`job run` without a store"
    app = the_app(plan.target, store, said_by)
    _check_kinds(app, job_file)
    try:
        system = await app.system()
        opened = Session(system, Principal(settings_for(store).principal, app.principal.organization))
        # Before the job is submitted, so that the defaults of its kinds hold for it.
        await system.engine.declare(app.registry.definitions(), opened.principal)
        async with _workers(plan, job_file, app, opened, shares):
            job = await _ended(opened, await _submit(opened, job_file), job_file.request.name)
            tasks = await opened.views.job_tasks(opened.organization, job.id)
            failures = await failures_of(opened, tasks)
            waits = await _waits(opened, job_file, job)
    finally:
        await app.close()
    return Run(report(job, tasks, plan.concurrency, job_file.seconds, waits), failures)


async def _waits(opened: Session, job_file: JobFile, job: "JobView") -> Waits:
    """What the file, and the retry policies of what failed, asked to be waited for."""
    began = datetime.fromtimestamp(job.created_us / 1_000_000, UTC)
    not_before = {task.name: task.delay for task in job_file.request.tasks if task.delay is not None}
    for task in job_file.request.tasks:
        if task.run_at is not None:
            not_before[task.name] = max(0.0, (task.run_at - began).total_seconds())
    return Waits(not_before, await _tried(opened, job))


async def _tried(opened: Session, job: "JobView") -> dict[str, float]:
    """The seconds from the first attempt to the last, by the names of the tasks that were tried again."""
    tried: dict[str, float] = {}
    cursor: str | None = None
    while True:
        page = await opened.views.tasks(opened.organization, TaskFilter(job=job.id), LIST_MAX_ROWS, cursor)
        for view in page.rows:
            if view.attempt > 1 and view.name is not None:
                if len(tried) == TRIED_MAX:
                    write_note(
                        f"more than {TRIED_MAX:,} tasks were tried again: what the others waited for that counts as"
                        " overhead"
                    )
                    return tried
                attempts = await opened.views.attempts(opened.organization, view.id)
                tried[view.name] = (attempts[-1].leased_us - attempts[0].leased_us) / 1_000_000
        cursor = page.cursor
        if cursor is None:
            return tried


async def _submit(opened: Session, job_file: JobFile) -> str:
    """The id of the job. Raises a `Refused` that points into its file."""
    try:
        return (await opened.operations.submit_job(job_file.request, opened.principal)).id
    except Refused as refusal:
        raise job_file.placed(refusal) from None


def _check_kinds(app: "App", job_file: JobFile) -> None:
    """Refuse, before anything is stored, what no worker of this command could run."""
    missing = sorted({task.kind for task in job_file.request.tasks if app.registry.find(task.kind) is None})
    if missing:
        raise Invalid(
            f"no handler here for kind {', '.join(map(repr, missing))}: name the app that has it with --app MODULE:APP,"
            " or hand the job to other workers with `perdure job submit`",
            field="kind",
            kinds=missing,
        )


@contextlib.asynccontextmanager
async def _workers(
    plan: Plan, job_file: JobFile, app: "App", opened: Session, shares: list[int]
) -> AsyncIterator[None]:
    """Workers that serve the queues of the job during the block, and the duties in this process."""
    queues = tuple(sorted({task.queue or DEFAULT_QUEUE for task in job_file.request.tasks} | set(app.registry.queues)))
    if plan.workers == 0:
        async with _worker_here(app.worker(concurrency=shares[0], prefetch=0, queues=queues)):
            yield
        return
    commands = [worker_command(plan.target, share, queues) for share in shares]
    environ = {"PERDURE_LOG_LEVEL": "warning", **os.environ, variable("store"): opened.system.settings.store}
    processes = WorkerProcesses(commands, environ)
    async with opened.system.engine.duty_runner(), processes.running():
        await _registered(opened, processes)
        yield


@contextlib.asynccontextmanager
async def _worker_here(worker: "Working") -> AsyncIterator[None]:
    """A worker of this process; when it fails, the block is left with its error."""
    with bare_errors():
        async with asyncio.TaskGroup() as group:
            group.create_task(worker.run(), name="perdure-worker")
            try:
                yield
            finally:
                worker.drain()


def _shares(concurrency: int, workers: int) -> list[int]:
    """How many tasks each worker runs at once: as even as it goes, none without. Raises `Invalid`."""
    whole, rest = divmod(concurrency, max(1, workers))
    shares = [share for share in (whole + (index < rest) for index in range(max(1, workers))) if share]
    if shares[0] > CONCURRENCY_MAX:
        raise Invalid(
            f"a worker runs at most {CONCURRENCY_MAX} tasks at once: say --workers"
            f" {-(-concurrency // CONCURRENCY_MAX)} or more for --concurrency {concurrency}",
            field="concurrency",
        )
    return shares


async def _registered(opened: Session, processes: WorkerProcesses) -> None:
    """Wait until all worker processes are known to the store: their start is no part of the job's run."""
    try:
        async with asyncio.timeout(START_SECONDS):
            while True:
                workers = await opened.views.workers(opened.organization, None)
                if processes.pids <= {worker.pid for worker in workers if worker.left_us is None}:
                    return
                await asyncio.sleep(STARTED_EVERY)
    except TimeoutError:
        raise WaitTimedOut(f"the worker processes did not come up within {START_SECONDS:g} s") from None


async def _ended(opened: Session, job_id: str, name: str) -> "JobView":
    """Wait for the end of the job with a line of progress."""
    job = await opened.views.job(opened.organization, job_id)
    assert job is not None
    async with watched(job.total, name) as advance:
        while job.state not in JOB_ENDED:
            await asyncio.sleep(LOOK_EVERY)
            job = await opened.views.job(opened.organization, job_id)
            assert job is not None
            advance(job.total - job.open)
    return job
