"""The app: the one object that a program makes, and everything a program does with tasks goes through it."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, Unpack, overload

from perdure.app.call import Target, call_of
from perdure.app.flow import AppFlow
from perdure.app.given import check_given
from perdure.app.handle import Handle
from perdure.app.job import JobBuilder
from perdure.app.job_handle import JobHandle
from perdure.app.matching import Which, WhichDeadLetters, act_on_all
from perdure.app.opening import Openings
from perdure.app.patience import Patience
from perdure.app.running import Working, run_until_signal
from perdure.app.schedules import AppSchedules, ScheduleOptions
from perdure.app.schedules import T as ScheduledTask
from perdure.app.submitting import Answer, Many, all_or_raise, submit_call, submit_calls
from perdure.app.sync import SyncApp
from perdure.app.task import Call, KindOptions, R, Task, TaskDecorator, registration
from perdure.builtin import SLEEP_KIND, sleep
from perdure.domain import ids
from perdure.domain.retry import Retry
from perdure.domain.task import FailurePolicy, OnLoss
from perdure.domain.unique import Unique
from perdure.engine.act_on_matching import Act
from perdure.engine.duties import Duty
from perdure.engine.engine import Operations
from perdure.engine.requests import Principal
from perdure.errors import Misuse
from perdure.settings import Settings
from perdure.telemetry.tracer import Tracer
from perdure.wiring import System, check_store, open_system
from perdure.worker.handler import Handler
from perdure.worker.registry import Registry


class App:
    """Tasks, and the store that keeps them.

    `store` is a path or `sqlite:///path` of a SQLite file, or `postgresql://user:password@host:port/database`;
    `PERDURE_STORE` when it is not said, else `perdure.db` in the working directory. Nothing is opened before it is
    used; each process and each event loop opens its own. `async with app:` closes at the end; a later use opens again.

    With the URL of a gateway (`http://host:port`), all of it works the same from any machine, except for what happens
    inside a transaction of your own. Who acts is the gateway's to say then, and the duties are done where the store is.

    `tracer`, a `perdure.telemetry.tracer.Tracer`, makes traces in the place of what the setting `traces` says.

    Raises `Invalid` for a bad setting and `Misuse` for a store that this version cannot use, or something else in the
    place of one.
    """

    def __init__(
        self,
        store: str | Path | None = None,
        *,
        settings: Settings | None = None,
        organization: str | None = None,
        principal: str | None = None,
        tracer: Tracer | None = None,
    ) -> None:
        _check_parts(store, settings, tracer)
        chosen = Settings.load() if settings is None else settings
        path = str(store) if store is not None else None
        self.settings = chosen.but(store=path, organization=organization, principal=principal)
        check_store(self.settings.store)
        self.principal = Principal(self.settings.principal, self.settings.organization)
        self.registry = Registry()
        self.tasks: dict[str, Task[..., Any]] = {}
        self.openings = Openings(lambda: open_system(self.settings, tracer=tracer))
        self.patience = Patience()
        self.sync = SyncApp(self)
        """The same app for code without `await`."""
        self.schedules = AppSchedules(self)
        """What is done with schedules."""
        self.flow = AppFlow(self)
        """What may start: pauses, limits, breakers."""
        self.task(SLEEP_KIND)(sleep)

    async def __aenter__(self) -> Self:
        await self.operations()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def operations(self) -> Operations:
        """The engine under this app, opened if this is the first use in this process and event loop."""
        return (await self.system()).engine

    async def system(self) -> System:
        """Store and engine, opened if this is the first use in this process and event loop."""
        return await self.openings.system()

    async def close(self) -> None:
        """Let go of the store. Harmless when nothing is open; a later use opens it again."""
        await self.openings.close()

    def task(self, kind: str, **options: Unpack[KindOptions]) -> TaskDecorator:
        """Make a task of a function, async or plain: workers of this app call it for tasks of `kind`.

        The options, listed in `KindOptions`, are the defaults for every task of the kind; a submit may say otherwise.
        Durations are seconds. Raises `Misuse` when the kind is registered already or the function cannot be a handler.
        """
        said = registration(kind, options)

        def register(function: Callable[..., Any]) -> Handler:
            return self.registry.add(kind, function, **said)

        def made(task: Task[..., Any]) -> None:
            self.tasks[kind] = task

        return TaskDecorator(register, made)

    def schedule(
        self,
        cron: str | None = None,
        /,
        *,
        name: str | None = None,
        payload: Any = None,
        **options: Unpack[ScheduleOptions],
    ) -> Callable[[ScheduledTask], ScheduledTask]:
        """Declare, above `@app.task(...)`, when the task is to be submitted: workers of this app tell the store.

        `@app.schedule("0 3 * * *", time_zone="Europe/Berlin")`, or `every` so many seconds, or once `at` an instant;
        the other options, listed in `ScheduleOptions`, are policies. `name` is the kind where it is not said.
        """
        return self.schedules.declare(cron, name, payload, options)

    @overload
    async def submit(
        self,
        task: Task[..., R] | Call[R],
        /,
        *args: Any,
        payload: Any = None,
        idempotency_key: str | None = None,
        queue: str | None = None,
        priority: int | None = None,
        delay: float | None = None,
        run_at: datetime | None = None,
        max_attempts: int | None = None,
        retry: Retry | None = None,
        timeout: float | None = None,
        ttl: float | None = None,
        execution_limit: float | None = None,
        lease: float | None = None,
        max_losses: int | None = None,
        on_loss: OnLoss | None = None,
        capabilities: list[str] | None = None,
        labels: dict[str, str] | None = None,
        metadata: Any = None,
        trace: str | None = None,
        unique: Unique | None = None,
        unique_key: str | None = None,
        connection: Any = None,
        **fields: Any,
    ) -> Handle[R]: ...
    @overload
    async def submit(
        self, task: str, /, *args: Any, payload: Any = None, connection: Any = None, **fields: Any
    ) -> Handle[Any]: ...
    async def submit(
        self, task: Target, /, *args: Any, payload: Any = None, connection: Any = None, **fields: Any
    ) -> Handle[Any]:
        """Submit one task and return a hold on it. It is stored, durably, when this returns.

        `task` is what `@app.task` made, a `task.call(...)`, or the name of a kind. `args` and `fields` are its
        handler's, or `payload` is the whole payload. `run_at` is an aware datetime, durations are seconds: `delay`
        before the start, `timeout` of one attempt, `ttl` in which it must have started, `execution_limit` in which it
        must have ended. The same `idempotency_key` again gives the task that it made. `unique` says that of several
        tasks one is enough, on top of what the kind says of it; the handle's `outcome` tells what became of this one.

        With `connection`, an open transaction on the store's own database (of `apsw` on its file; of psycopg,
        SQLAlchemy or Django on PostgreSQL), the task exists exactly if that transaction commits.

        Raises `Invalid`, `TooLarge`, `IdempotencyConflict`, `UniqueConflict`, `Overloaded`, `Misuse` (nothing is
        stored then) or one of
        `Unavailable`.
        """
        call = self.call(task, *args, payload=payload, **fields)
        if connection is None:
            return await submit_call(self, self.openings.at_hand(), call)
        [handle] = all_or_raise(await submit_calls(self, [call], connection))
        return handle

    def call(self, task: Target, /, *args: Any, payload: Any = None, **fields: Any) -> Call[Any]:
        """The call that `submit` with these arguments would submit."""
        return call_of(task, args, fields, payload=payload, known=self.tasks)

    @overload
    async def submit_many(
        self, calls: Sequence[Call[R]], *, connection: Any = None, return_errors: Literal[False] = False
    ) -> list[Handle[R]]: ...
    @overload
    async def submit_many(
        self, calls: Many, *, connection: Any = None, return_errors: Literal[False] = False
    ) -> list[Handle[Any]]: ...
    @overload
    async def submit_many(
        self, calls: Many, *, connection: Any = None, return_errors: Literal[True]
    ) -> list[Answer]: ...
    async def submit_many(
        self, calls: Many, *, connection: Any = None, return_errors: bool = False
    ) -> list[Handle[Any]] | list[Answer]:
        """Submit up to 10,000 calls in one round trip; handles come back in their order.

        A refused call does not touch the others. The first refusal is raised, with its `index` and the ids of what
        was `submitted`; with `return_errors` each call has a handle or its error in its place instead.
        """
        answers = await submit_calls(self, calls, connection)
        return answers if return_errors else all_or_raise(answers)

    def job(self, name: str, *, on_failure: FailurePolicy = "fail", metadata: Any = None) -> JobBuilder:
        """A job to be built: `with app.job("nightly") as job:` add tasks, then `await job.submit()`.

        `on_failure` is what a task's failure means for what depends on it: `fail` cancels that, `continue` goes on,
        `cancel_job` stops everything.
        """
        return JobBuilder(self, self.tasks, name, on_failure, metadata)

    async def cancel_all(
        self, *, text: str | None = None, dry_run: bool = False, **which: Unpack[Which]
    ) -> dict[str, int]:
        """Cancel all tasks that have not ended and match: by `kinds`, `queues`, `labels`, `job`, `submitters`.

        Counts how many `matched`, and what became of them (`cancelled`, `cancelling`); a `dry_run` only the former.
        """
        return await act_on_all(self, Act.CANCEL, which, dry_run=dry_run, text=text)

    async def requeue_all(
        self, *, rate: int | None = None, dry_run: bool = False, **which: Unpack[WhichDeadLetters]
    ) -> dict[str, int]:
        """Run all dead letters again that match, at most `rate` of them a second; of all, if nothing else is said.

        Counts how many `matched`, were `requeued`, and were `refused` because they moved meanwhile.
        """
        return await act_on_all(self, Act.REQUEUE, which, dry_run=dry_run, rate=rate)

    async def discard_all(self, *, dry_run: bool = False, **which: Unpack[WhichDeadLetters]) -> dict[str, int]:
        """Mark all dead letters that match as done with. Counts as `requeue_all`."""
        return await act_on_all(self, Act.DISCARD, which, dry_run=dry_run)

    async def purge_all(self, *, dry_run: bool = False, **which: Unpack[WhichDeadLetters]) -> dict[str, int]:
        """Remove all dead letters that match for good. Counts as `requeue_all`."""
        return await act_on_all(self, Act.PURGE, which, dry_run=dry_run)

    def handle(self, task_id: str, task: Task[..., R] | None = None) -> Handle[R]:
        """A hold on a task that exists. With `task`, its result is converted to what that handler returns.

        Raises `Malformed` for what is no id.
        """
        return Handle(self, ids.parse(task_id), task.handler if task is not None else None)

    async def job_handle(self, job_id: str) -> JobHandle:
        """A hold on a job that exists. Raises `NotFound`."""
        operations = await self.operations()
        organization = self.principal.organization
        tasks = await operations.views.job_tasks(organization, ids.parse(job_id, "job"))
        handlers = {each.name: self.registry.find(each.kind) for each in tasks}
        return JobHandle(self, job_id, {each.name: each.id for each in tasks}, handlers)

    def worker(self, *, duties: bool = True, **options: Any) -> Working:
        """A worker for the tasks of this app: `await worker.run()`, or `async with app.worker():`.

        The options are those of a worker, `concurrency` and `queues` first of all; the settings fill in the rest.
        `duties=False` leaves the system's background duties to another process.
        """
        return Working(self, options, duties=duties)

    async def run(self, *, duties: bool = True, **options: Any) -> str | None:
        """Work until SIGTERM or SIGINT, then let go of the store: the first signal drains, a second ends at once.

        Tells why the worker ended: `drained`, `recycled` after its `max_tasks`, `revoked` by an operator.
        """
        try:
            return await run_until_signal(self.worker(duties=duties, **options))
        finally:
            await self.close()

    async def duties(self) -> list[Duty]:
        """The system's background duties, for those who want to run them themselves."""
        return (await self.operations()).duties()


def _check_parts(store: object, settings: object, tracer: object) -> None:
    if store is not None:
        check_given(
            store, (str, Path), "store", "a path or the URL of a store, as perdure.db or postgresql://user@host/db"
        )
    if settings is not None:
        check_given(settings, Settings, "settings", "a perdure.Settings, as perdure.Settings(concurrency=8)")
    if tracer is not None and not all(callable(getattr(tracer, each, None)) for each in ("submitting", "running")):
        raise Misuse("tracer must have the methods of perdure.telemetry.tracer.Tracer", field="tracer")
