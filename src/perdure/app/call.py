"""From the arguments of a submit to a call: which are options, which are the handler's fields."""

from collections.abc import Mapping, Sequence
from typing import Any

from perdure.app.task import OPTION_NAMES, Call, ResultOf, Task
from perdure.errors import Misuse

Target = Task[..., Any] | Call[Any] | str
"""What can be submitted: a task, a call of one, or the name of a kind."""


def call_of(
    target: Target,
    args: Sequence[Any],
    fields: Mapping[str, Any],
    *,
    payload: Any = None,
    options: Mapping[str, Any],
    known: Mapping[str, Task[..., Any]],
) -> Call[Any]:
    """The call that a submit means. `options` that are `None` were not said; `known` are the app's tasks by kind.

    Raises `Misuse` where the arguments contradict each other and `Invalid` where the handler does not take them.
    """
    said = {name: value for name, value in options.items() if value is not None}
    if isinstance(target, Call):
        _refuse_arguments(target, args, fields, payload)
        return target.with_options(**said)
    task = known.get(target) if isinstance(target, str) else target
    kind = target if isinstance(target, str) else target.kind
    if payload is not None:
        if args or fields:
            raise Misuse(f"submit of {kind!r}: give either payload= or the handler's fields, not both")
        return Call(kind, payload, said, task)
    if task is None:
        if args:
            raise Misuse(f"kind {kind!r} is not one of this app's tasks: give its fields by name, or payload=")
        results = {name: value for name, value in fields.items() if isinstance(value, ResultOf)}
        return Call(kind, {name: fields[name] for name in fields if name not in results}, said, results=results)
    _refuse_ambiguous(task, said)
    return task.call(*args, **fields).with_options(**said)


def _refuse_arguments(call: Call[Any], args: Sequence[Any], fields: Mapping[str, Any], payload: Any) -> None:
    if args or fields or payload is not None:
        raise Misuse(
            f"this call of {call.kind!r} has its fields already: give them to task.call(...), only options here"
        )


def _refuse_ambiguous(task: Task[..., Any], said: Mapping[str, Any]) -> None:
    for name in sorted(said.keys() & OPTION_NAMES):
        if name in task.handler.parameters:
            raise Misuse(
                f"{name!r} is both an option of submit and a field of {task.kind!r}: submit"
                f" task.call({name}=...) for the field, and give {name}= beside it for the option"
            )
