"""Tasks that a handler adds to its own job: from calls and items to requests, and their way to the source."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple, Protocol

import msgspec

from perdure.ambient import Clock
from perdure.engine.requests import NewTask, TaskRequest
from perdure.errors import Invalid, LeaseLost, Misuse, Unavailable
from perdure.store.job_ledger import Grown
from perdure.worker.held import HeldAttempt
from perdure.worker.reporting import RETRY_MAX_SECONDS, RETRY_MIN_SECONDS, Reporter, lease_lost
from perdure.worker.tracing import trace_of
from perdure.worker.work_source import WorkSource

PREFIX_MAX_CHARS = 120
"""A longer name is shortened to its digest where it begins the names of what its task adds."""


class AnyCall(Protocol):
    """A kind with its payload and options: `task.call(...)`."""

    @property
    def kind(self) -> str:
        """The kind."""

    def request(self) -> TaskRequest:
        """What is asked for."""


class AnyTask(Protocol):
    """A handler with its kind, as `@app.task` makes it."""

    @property
    def kind(self) -> str:
        """The kind."""

    @property
    def handler(self) -> Any:
        """What is registered; `parameters` are the names of its fields."""

    def call(self, *args: Any, **fields: Any) -> AnyCall:
        """A call of it."""


Target = AnyTask | str
Addable = AnyCall | NewTask


class Mapped(NamedTuple):
    """What `map` added. `names` are those of the mapped tasks, in the order of the items."""

    names: list[str]
    reduce: str | None
    """The name of the task that gets their results."""
    task_ids: dict[str, str]
    """All of them, by name."""


class Naming:
    """Gives names to what one attempt adds: the same ones whenever its handler asks for the same in the same order."""

    def __init__(self, name: str | None) -> None:
        self._prefix = name or ""
        if len(self._prefix) > PREFIX_MAX_CHARS:
            self._prefix = sha256(self._prefix.encode()).hexdigest()[:16]
        self._numbers: Counter[str] = Counter()

    def next(self, kind: str, said: str | None = None) -> str:
        """The next name for a task of a kind; `said` stands in the place of what is usual before its number."""
        stem = said or f"{self._prefix}.{kind.rpartition('.')[2] or kind}"
        self._numbers[stem] += 1
        return f"{stem}-{self._numbers[stem]}"


def requested(tasks: Sequence[Addable], naming: Naming, after: Sequence[str], before: Sequence[str]) -> list[Any]:
    """What is asked for: every task has a name, and goes after and before what is said of all of them."""
    requests = []
    for each in tasks:
        if isinstance(each, NewTask):
            named = {name if isinstance(name, str) else name.name for name in each.depends_on}
            depends_on = [*each.depends_on, *(name for name in after if name not in named)]
            onward = [*each.before, *(name for name in before if name not in each.before)]
            requests.append(msgspec.structs.replace(each, depends_on=depends_on, before=onward))
            continue
        if not hasattr(each, "request"):
            raise Misuse(f"a value of type {type(each).__name__} is not a task to be added: give task.call(...)")
        requests.append(_added(each.request(), naming.next(each.kind), after, before))
    return requests


def mapped(
    target: Target,
    items: Sequence[Any],
    reduce: Target | None,
    into: str | None,
    naming: Naming,
    name: str | None,
    after: Sequence[str],
    before: Sequence[str],
) -> tuple[list[NewTask], list[str], str | None]:
    """One task for each item and one that gets all their results: the requests, the items' names, and the last's."""
    requests = [
        _added(request, naming.next(request.kind, name), after, () if reduce is not None else before)
        for request in (_request_of(target, item) for item in items)
    ]
    names = [each.name for each in requests]
    if reduce is None:
        return requests, names, None
    kind = reduce if isinstance(reduce, str) else reduce.kind
    field = into or _first_field(reduce)
    last = naming.next(kind)
    payload: dict[str, Any] = {} if field is None or names else {field: []}
    bindings: dict[str, str | list[str]] = {field: list(names)} if field is not None and names else {}
    request = NewTask(kind=kind, payload=payload, name=last, depends_on=[*names], bindings=bindings, before=[*before])
    return [*requests, request], names, last


async def add(
    source: WorkSource, reporter: Reporter, held: HeldAttempt, clock: Clock, requests: Sequence[NewTask]
) -> Grown:
    """Add tasks, again while the source is away and the lease lasts. Raises `LeaseLost` and what the source refuses."""
    trace = trace_of(held.lease.options)
    for each in requests:
        each.trace = each.trace or trace
    wait = RETRY_MIN_SECONDS
    while True:
        now_us = clock.monotonic_us()
        if held.lost or now_us >= held.until_us:
            raise lease_lost(held)
        try:
            grown = await source.add_tasks(held.hold, requests, held.ran_us(now_us) or 0)
        except LeaseLost:
            reporter.stop_lost(held)
            raise
        except Unavailable:
            await asyncio.sleep(wait)
            wait = min(wait * 2, RETRY_MAX_SECONDS)
        else:
            held.told_started = True
            return grown


def _added(request: TaskRequest, name: str, after: Sequence[str], before: Sequence[str]) -> NewTask:
    said: Mapping[str, Any] = {field: getattr(request, field) for field in request.__struct_fields__}
    return NewTask(**said, name=name, depends_on=[*after], before=[*before])


def _request_of(target: Target, item: Any) -> TaskRequest:
    """A call of the target for one item: a mapping is its fields, anything else its first argument."""
    if hasattr(item, "request"):
        request: TaskRequest = item.request()
        return request
    if isinstance(target, str):
        return TaskRequest(kind=target, payload=item)
    if not hasattr(target, "call"):
        raise Misuse(f"a value of type {type(target).__name__} is not a task: give the task itself, or its kind")
    return (target.call(**item) if isinstance(item, dict) else target.call(item)).request()


def _first_field(reduce: Target) -> str | None:
    """Where the results go: the first field of a handler; nowhere for a kind of which nothing else is known."""
    if isinstance(reduce, str):
        return None
    parameters: tuple[str, ...] = reduce.handler.parameters
    if not parameters:
        raise Invalid(
            f"{reduce.kind!r} has no field for the results: let it read ctx.parents, and give its kind as a text",
            field="reduce",
        )
    return parameters[0]
