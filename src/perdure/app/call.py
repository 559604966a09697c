"""From the arguments of a submit to a call: which are options, which are the handler's fields."""

from collections.abc import Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any

from perdure.app.node import Node
from perdure.app.task import OPTION_NAMES, PLAIN, Call, Task, is_plain, is_result, refuse_result_inside
from perdure.domain.likeness import did_you_mean
from perdure.errors import Invalid, Misuse

Target = Task[..., Any] | Call[Any] | str
"""What can be submitted: a task, a call of one, or the name of a kind."""
_TARGETS = (Task, Call, str)


def call_of(
    target: Target,
    args: Sequence[Any],
    fields: Mapping[str, Any],
    *,
    payload: Any = None,
    known: Mapping[str, Task[..., Any]],
    keywords: Collection[str] = (),
) -> Call[Any]:
    """The call that a submit means. `fields` are options and the handler's together; options that are `None` were not
    said. `known` are the app's tasks by kind; `keywords` were said too and belong to the submit as well.

    Raises `Misuse` where the arguments contradict each other and `Invalid` where the handler does not take them.
    """
    task = known.get(target) if isinstance(target, str) else target
    if isinstance(task, Task) and payload is None and not keywords and OPTION_NAMES.isdisjoint(fields):
        if is_plain(args, fields):
            return _bound(task, task.plain_call, args, fields)
    elif not isinstance(target, _TARGETS):
        raise not_a_task(target)
    _refuse_nodes(args, fields, payload)
    said: dict[str, Any] = {}
    if not OPTION_NAMES.isdisjoint(fields):
        said = {name: fields[name] for name in fields if name in OPTION_NAMES and fields[name] is not None}
        fields = {name: fields[name] for name in fields if name not in OPTION_NAMES}
    if isinstance(task, Call):
        _refuse_arguments(task, args, fields, payload)
        return task.with_options(**said)
    kind = target if isinstance(target, str) else target.kind
    if task is not None and (said or keywords or payload is not None):
        _refuse_ambiguous(task, {*said, *keywords, *(["payload"] if payload is not None else [])})
    if payload is not None:
        if args or fields:
            raise Misuse(f"submit of {kind!r}: give either payload= or the handler's fields, not both")
        return Call(kind, payload, said, task)
    if task is None:
        if args:
            raise Misuse(f"kind {kind!r} is not one of this app's tasks: give its fields by name, or payload=")
        results = {name: value for name, value in fields.items() if is_result(value)}
        given = {name: fields[name] for name in fields if name not in results}
        refuse_result_inside(kind, given.values())
        return Call(kind, given, said, results=results)
    return _bound(task, lambda args, fields: task.call(*args, **fields), args, fields).with_options(**said)


def _bound(
    task: Task[..., Any],
    bind: Callable[[Sequence[Any], Mapping[str, Any]], Call[Any]],
    args: Sequence[Any],
    fields: Mapping[str, Any],
) -> Call[Any]:
    """The call with these arguments. Where the handler does not take them, it is told which name may be meant."""
    try:
        return bind(args, fields)
    except Invalid as problem:
        known = {*task.handler.parameters, *OPTION_NAMES}
        for name in fields:
            meant = "" if name in known else did_you_mean(name, known)
            if meant:
                raise Invalid(problem.message + meant, **problem.fields) from None
        raise


def not_a_task(target: object) -> Misuse:
    """The error about something that cannot be submitted, with what to write instead."""
    if isinstance(target, Coroutine):
        target.close()  # Nobody will await it, and Python would complain of that too.
        return Misuse(
            f"{getattr(target, '__qualname__', 'this')}(...) is a coroutine, not a task: pass the task and its"
            " arguments, do not call it"
        )
    if callable(target):
        name = getattr(target, "__qualname__", type(target).__name__)
        return Misuse(f"{name} is not a task: decorate it with @app.task(kind)")
    return Misuse(
        f"a value of type {type(target).__name__} is not a task: pass the task and its arguments, do not call it"
    )


def _refuse_nodes(args: Sequence[Any], fields: Mapping[str, Any], payload: Any) -> None:
    if PLAIN.issuperset(map(type, (*args, *fields.values(), payload))):
        return
    given = {**{str(place): value for place, value in enumerate(args)}, **fields, "payload": payload}
    for name, value in given.items():
        inner = value if isinstance(value, list | tuple) else value.values() if isinstance(value, dict) else (value,)
        for each in inner:
            if isinstance(each, Node):
                place = f"argument {name}" if name.isdigit() else f"{name}="
                raise Misuse(f"{place} is the job's task {each.name!r} itself, not what it returns: use node.result")


def _refuse_arguments(call: Call[Any], args: Sequence[Any], fields: Mapping[str, Any], payload: Any) -> None:
    if args or fields or payload is not None:
        raise Misuse(
            f"this call of {call.kind!r} has its fields already: give them to task.call(...), only options here"
        )


def _refuse_ambiguous(task: Task[..., Any], said: Collection[str]) -> None:
    for name in sorted(set(said) & set(task.handler.parameters)):
        raise Misuse(
            f"{name}= could mean the field of {task.kind!r} or what is said of the task itself: give"
            f" task.call({name}=...) for the field, and {name}= beside it for the other"
        )
