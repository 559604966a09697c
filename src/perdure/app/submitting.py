"""From calls to handles: one round trip for however many there are."""

from collections.abc import Sequence
from copy import copy
from typing import Any

from perdure.app.call import not_a_task
from perdure.app.handle import Access, Handle
from perdure.app.known_kinds import declare_unknown, wonder_at_unknown
from perdure.app.task import Call, Task
from perdure.app.tracing import traced
from perdure.engine.requests import AlikeRequests, TaskRequest
from perdure.errors import Misuse, PerdureError
from perdure.store.ledger import Submitted
from perdure.wiring import System
from perdure.worker.handler import Handler

Many = Sequence[Call[Any] | TaskRequest]
Answer = Handle[Any] | PerdureError


async def submit_calls(access: Access, calls: Many, connection: Any = None) -> list[Answer]:
    """Submit through the engine, or, with a `connection`, inside the transaction that is open on it."""
    alike = _alike(calls) if connection is None else None
    if alike is not None:
        return await _submit_alike(access, *alike)
    _check(calls)
    if not calls:
        return []
    system = await access.system()
    if connection is not None:
        # Nothing else is written: the store may be locked by that very transaction. So what a kind says goes along.
        with traced(system, [_request(call, inherit=True) for call in calls]) as requests:
            answers = await system.engine.submit_within_async(connection, requests, access.principal)
        return _handles(access, calls, answers)
    await declare_unknown(system, {call.task for call in calls if isinstance(call, Call)}, access.principal)
    named = {call.kind for call in calls if not isinstance(call, Call) or call.task is None}
    await wonder_at_unknown(system, named, access.principal)
    with traced(system, [_request(call) for call in calls]) as requests:
        answers = await system.engine.submit(requests, access.principal)
    return _handles(access, calls, answers)


async def _submit_alike(access: Access, alike: AlikeRequests, task: Task[..., Any] | None) -> list[Answer]:
    """As `submit_calls` with calls of one task that say nothing but their payloads."""
    system = await access.system()
    if alike.kind not in system.known_kinds:
        await declare_unknown(system, [task], access.principal)
        if task is None:
            await wonder_at_unknown(system, [alike.kind], access.principal)
    with traced(system, alike) as requests:
        answers = await system.engine.submit(requests, access.principal)
    handler = task.handler if task is not None else None
    return [answer if isinstance(answer, PerdureError) else _handle_of(access, handler, answer) for answer in answers]


async def submit_call(access: Access, at_hand: System | None, call: Call[Any]) -> Handle[Any]:
    """As `submit_calls` with one call, without what only pays for many. Raises what keeps it from being stored.

    `at_hand` is the system if it is open already.
    """
    if call.results:
        _check([call])
    system = at_hand or await access.system()
    if call.task is not None and call.kind not in system.known_kinds:
        await declare_unknown(system, [call.task], access.principal)
    elif call.task is None and call.kind not in system.wondered_at:
        await wonder_at_unknown(system, [call.kind], access.principal)
    request = call.request()
    if system.tracer is None:
        (answer,) = await system.engine.submit((request,), access.principal)
    else:
        with traced(system, [request]) as requests:
            (answer,) = await system.engine.submit(requests, access.principal)
    if isinstance(answer, PerdureError):
        raise answer
    return _handle(access, call, answer)


def submit_calls_within(access: Access, system: System, calls: Many, connection: Any) -> list[Answer]:
    """As `submit_calls` with a `connection`, on the caller's own thread."""
    _check(calls)
    with traced(system, [_request(call, inherit=True) for call in calls]) as requests:
        answers = system.engine.submit_within(connection, requests, access.principal)
    return _handles(access, calls, answers)


def all_or_raise(answers: Sequence[Answer]) -> list[Handle[Any]]:
    """The handles; raises the first error when there is one, with its `index` and the ids of what was submitted."""
    handles = [answer for answer in answers if isinstance(answer, Handle)]
    if len(handles) == len(answers):
        return handles
    errors = [(index, answer) for index, answer in enumerate(answers) if isinstance(answer, PerdureError)]
    index, first = errors[0]
    if len(answers) > 1:
        # The answers are the caller's: what is raised tells more than the one that it is made of.
        cause, first = first.__cause__, copy(first)
        first.__cause__ = cause
        first.args = (
            f"{len(errors)} of {len(answers)} tasks were refused, the first is number {index}: {first.message}."
            f" {len(handles)} are submitted; return_errors=True gives handles and errors side by side",
        )
        first.message = str(first.args[0])
        first.fields |= {"index": index, "submitted": [handle.id for handle in handles]}
    raise first


def _alike(calls: Many) -> tuple[AlikeRequests, Task[..., Any] | None] | None:
    """What several calls ask for, in a column, if they are of one task and say nothing but their payloads."""
    first = calls[0] if len(calls) > 1 else None
    if type(first) is not Call:
        return None
    kind, task = first.kind, first.task
    payloads: list[Any] = []
    for call in calls:
        if type(call) is not Call or call.task is not task or call.kind != kind or call.options or call.results:
            return None
        payloads.append(call.payload)
    return AlikeRequests(kind, payloads), task


def _check(calls: Many) -> None:
    for call in calls:
        if isinstance(call, Task):
            raise Misuse(f"submit_many takes calls: write task.call(...) for {call.kind!r}", kind=call.kind)
        if not isinstance(call, Call | TaskRequest):
            raise not_a_task(call)
        if isinstance(call, Call) and call.results:
            field, result = next(iter(call.results.items()))
            raise Misuse(f"field {field!r} of {call.kind!r} is the {result!r} of a job: add this call to that job")


def _request(call: Call[Any] | TaskRequest, inherit: bool = False) -> TaskRequest:
    return call.request(inherit=inherit) if isinstance(call, Call) else call


def _handles(access: Access, calls: Many, answers: Sequence[Submitted | PerdureError]) -> list[Answer]:
    handles: list[Answer] = []
    task: Task[..., Any] | None = None
    handler = None
    for call, answer in zip(calls, answers, strict=True):
        if isinstance(answer, PerdureError):
            handles.append(answer)
            continue
        own = call.task if isinstance(call, Call) else None
        if own is not task:
            task, handler = own, own.handler if own is not None else None
        handles.append(_handle_of(access, handler, answer))
    return handles


def _handle(access: Access, call: Call[Any] | TaskRequest, answer: Submitted) -> Handle[Any]:
    task = call.task if isinstance(call, Call) else None
    handler = task.handler if task is not None else None
    return _handle_of(access, handler, answer)


def _handle_of(access: Access, handler: Handler | None, answer: Submitted) -> Handle[Any]:
    id, state, replayed, outcome = answer
    return Handle(access, id, handler, replayed, state, answer.told() if replayed else outcome)
