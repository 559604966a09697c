"""What `@app.task` makes of a function, and a call of it that has not been submitted yet."""

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, cast, overload

import msgspec

from perdure.app.kind_check import check_kind, check_options
from perdure.domain.breaker import Breaker
from perdure.domain.limit import Limit
from perdure.domain.retry import Retry
from perdure.domain.task import OnLoss
from perdure.domain.unique import Unique
from perdure.engine.kinds import check_fields
from perdure.engine.requests import TaskRequest
from perdure.errors import Invalid, Misuse
from perdure.worker.handler import Handler
from perdure.worker.verdicts import Verdict

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Options(TypedDict, total=False):
    """How one task is to be treated. Durations are seconds; `None` takes the kind's default, then the system's."""

    idempotency_key: str | None
    queue: str | None
    priority: int | None
    delay: float | None
    run_at: datetime | None
    max_attempts: int | None
    retry: Retry | None
    timeout: float | None
    ttl: float | None
    execution_limit: float | None
    lease: float | None
    max_losses: int | None
    on_loss: OnLoss | None
    capabilities: list[str] | None
    labels: dict[str, str] | None
    metadata: Any
    trace: str | None
    unique: Unique | None
    unique_key: str | None


class KindOptions(TypedDict, total=False):
    """What a kind says: the defaults of its tasks, and how its handler is called and judged. Durations are seconds."""

    queue: str | None
    priority: int | None
    max_attempts: int | None
    """Short for `retry=Retry(max_attempts)`."""
    retry: Retry | None
    timeout: float | None
    ttl: float | None
    execution_limit: float | None
    lease: float | None
    max_losses: int | None
    on_loss: OnLoss | None
    capabilities: list[str] | None
    retry_on: Sequence[type[BaseException]] | None
    """Only these errors are worth another attempt."""
    give_up_on: Sequence[type[BaseException]] | None
    """These errors are not."""
    isolation: Literal["async", "thread"] | None
    retention: float | Mapping[str, float] | None
    """How long tasks are kept once they have ended, in seconds: for all ends, or by end state such as
    `{"succeeded": 3600}`. A task of a job stays as long as its job.
    """
    result_retention: float | None
    """How long results are kept, where that is shorter."""
    limits: Sequence[Limit] | None
    """How many of its tasks may run: at once, in a time, or one after the other; by fields of the payload, if said."""
    fair_by: str | Sequence[str] | None
    """Fields of the payload whose values take turns: a customer who floods delays another's task by one round."""
    breaker: Breaker | None
    """When its tasks are left alone because too many of them fail, and for how long."""
    unique: Unique | None
    """That of several tasks one is enough, which those are, and what becomes of the others."""
    redact: bool
    """Remove the payload once the task has ended and cannot be redriven. Reserved: this version refuses it."""
    upcasts: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] | None
    """Older kinds that this handler runs too, each with what turns its payload into this kind's."""


OPTION_NAMES = frozenset(Options.__annotations__)
NOTHING: Mapping[str, Any] = MappingProxyType({})
"""Of many calls each would have an empty dict of its own."""
PLAIN = frozenset({str, int, float, bool, bytes, type(None)})
"""Types of values that have nothing inside."""


class ResultOf:
    """Stands for the result of a job's task that has not run yet, as the value of another task's field."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<result of {self.name!r}>"


def is_plain(args: Sequence[Any], fields: Mapping[str, Any]) -> bool:
    """Whether all arguments are values that have nothing inside."""
    # Every call comes here: for one or two values, this is the quickest way to tell.
    for value in fields.values():
        if type(value) not in PLAIN:
            return False
    return not args or PLAIN.issuperset(map(type, args))


def is_result(value: object) -> bool:
    """Whether a field's value is a result to come, or a list of nothing else."""
    if isinstance(value, list | tuple):
        return bool(value) and all(isinstance(each, ResultOf) for each in value)
    return isinstance(value, ResultOf)


def _result_inside(value: object) -> ResultOf | None:
    """A result to come somewhere in a value of dicts and lists."""
    if isinstance(value, ResultOf):
        return value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return next((found for each in inner if (found := _result_inside(each)) is not None), None)


def refuse_result_inside(kind: str, values: Iterable[object]) -> None:
    """Raise `Invalid` where a result to come is a part of one of these values."""
    for value in values:
        if (result := _result_inside(value)) is not None:
            raise Invalid(
                f"the {result!r} is inside another value of {kind!r}: only a whole field, or a list of"
                " nothing else, can be results. Depend on the task with after=[...] and read ctx.parents",
                field="payload",
            ) from None


class Call(msgspec.Struct, Generic[R_co], frozen=True):
    """A kind with its payload and options, ready to be submitted, alone or among many."""

    kind: str
    payload: Any
    options: Mapping[str, Any] = NOTHING
    task: "Task[..., R_co] | None" = None
    results: Mapping[str, ResultOf | list[ResultOf]] = NOTHING
    """The fields that results of other tasks of a job will fill: one result, or a list of them."""

    def with_options(self, **options: Unpack[Options]) -> "Call[R_co]":
        """The same call with these options on top of those that it has. Raises `Misuse` for an unknown one."""
        if not options:
            return self
        unknown = sorted(set(options) - OPTION_NAMES)
        if unknown:
            raise Misuse(f"there is no option {unknown[0]!r}; the options are {', '.join(sorted(OPTION_NAMES))}")
        said = {name: value for name, value in options.items() if value is not None}
        return msgspec.structs.replace(self, options={**self.options, **said})

    def request(self, *, inherit: bool = False) -> TaskRequest:
        """What the engine is asked for. `inherit` adds what the kind says, where the store may not know the kind."""
        if not self.options and not inherit:
            return TaskRequest(kind=self.kind, payload=self.payload)
        inherited = self.task.defaults if inherit and self.task is not None else {}
        unique = self.options.get("unique")
        if inherit and self.task is not None and isinstance(unique, Unique):
            check_fields("unique", unique.by, self.kind, self.task.handler.schema)
        return TaskRequest(kind=self.kind, payload=self.payload, **{**inherited, **self.options})


class Task(Generic[P, R_co]):
    """A handler and its kind. Calling it calls the function, here and now; `app.submit` has a worker call it."""

    def __init__(self, handler: Handler, function: Callable[..., Any]) -> None:
        self.handler = handler
        self.kind = handler.kind
        self.function = function
        functools.update_wrapper(cast(Any, self), function)

    @property
    def defaults(self) -> dict[str, Any]:
        """The options that every task of this kind has where its submit says nothing."""
        said = msgspec.structs.asdict(self.handler.defaults)
        return {name: said[name] for name in said if name in OPTION_NAMES and said[name] not in (None, ())}

    def call(self, *args: Any, **fields: Any) -> Call[R_co]:
        """A call with these arguments, to be submitted later. All keywords are the handler's, none are options.

        Raises `Invalid` when the handler does not take such arguments.
        """
        if not is_plain(args, fields) and any(map(is_result, (*args, *fields.values()))):
            return self._call_with_results(args, fields)
        return self.plain_call(args, fields)

    def plain_call(
        self, args: Sequence[Any], fields: Mapping[str, Any], results: Mapping[str, Any] = NOTHING
    ) -> Call[R_co]:
        """As `call`. Results of other tasks are in `results` alone, by field."""
        try:
            payload = self.handler.bind(args, fields, results)
        except Invalid:
            refuse_result_inside(self.kind, (*args, *fields.values()))
            raise
        return Call(self.kind, payload, NOTHING, self, results)

    def _call_with_results(self, args: tuple[Any, ...], fields: dict[str, Any]) -> Call[R_co]:
        names = self.handler.parameters
        named = {**dict(zip(names, args, strict=False)), **fields}
        if len(args) > len(names) or len(named) < len(args) + len(fields):
            self.handler.bind(args, fields)  # It says what is wrong with them.
        results = {name: value for name, value in named.items() if is_result(value)}
        given = {name: value for name, value in named.items() if name not in results}
        return self.plain_call((), given, results)

    def __repr__(self) -> str:
        return f"<perdure task {self.kind!r}>"

    def __reduce__(self) -> str:
        """Pickled by name, as functions are."""
        return str(self.function.__qualname__)


class AsyncTask(Task[P, R_co]):
    """A task whose handler is a coroutine function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]:
        """Call the function itself; nothing is submitted."""
        result: Coroutine[Any, Any, R_co] = self.function(*args, **kwargs)
        return result


class SyncTask(Task[P, R_co]):
    """A task whose handler is a plain function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function itself; nothing is submitted."""
        result: R_co = self.function(*args, **kwargs)
        return result


class TaskDecorator:
    """What `app.task(kind, ...)` gives: it makes a task of a function.

    The task's result type is what the function returns, verdicts left out: nobody who waits for a result gets one.
    """

    def __init__(
        self, register: Callable[[Callable[..., Any]], Handler], made: Callable[[Task[..., Any]], None]
    ) -> None:
        self._register = register
        self._made = made

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, function: Callable[P, Coroutine[Any, Any, R | Verdict]], /
    ) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R | Verdict], /) -> SyncTask[P, R]: ...
    def __call__(self, function: Callable[..., Any], /) -> Task[..., Any]:
        if isinstance(function, Task):  # The same function may be the handler of several kinds, of several apps.
            function = function.function
        handler = self._register(function)
        task: Task[..., Any] = AsyncTask(handler, function) if handler.is_async else SyncTask(handler, function)
        self._made(task)
        return task


def registration(kind: str, options: KindOptions) -> dict[str, Any]:
    """The options as the registry takes them. Raises `Misuse` for a bad name, and for options that are
    unknown, contradict each other, or have values that no task could have.
    """
    check_kind(kind)
    unknown = sorted(options.keys() - KindOptions.__annotations__.keys())
    if unknown:
        known = ", ".join(sorted(KindOptions.__annotations__))
        raise Misuse(f"task {kind!r} is given the unknown option {unknown[0]!r}; the options are {known}", kind=kind)
    said: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if "max_attempts" in said:
        if "retry" in said:
            raise Misuse(f"task {kind!r}: say max_attempts either on its own or inside retry=, not both", kind=kind)
        said["retry"] = _retry(kind, said.pop("max_attempts"))
    if "upcasts" in said:
        said["upcasters"] = said.pop("upcasts")
    if isinstance(said.get("retention"), Mapping):
        said["retention"] = dict(said["retention"])
    if isinstance(said.get("fair_by"), str):
        said["fair_by"] = (said["fair_by"],)
    check_options(kind, said)
    for name in said.keys() & {"retry_on", "give_up_on", "capabilities", "limits", "fair_by"}:
        said[name] = tuple(said[name])
    return said


def _retry(kind: str, max_attempts: Any) -> Retry:
    try:
        return Retry(max_attempts)
    except Invalid as problem:
        raise Misuse(f"task {kind!r}: {problem.message}", kind=kind, field="max_attempts") from None
