"""What another payload makes of a task: its unique key and its gates, where they are by fields of the payload."""

from typing import Any

from perdure.domain.task import Body
from perdure.engine import encoding
from perdure.engine.kinds import Kind
from perdure.engine.unique_key import key_by
from perdure.store.specified import Specified


def options_with(payload: Body, task: Specified, kind: Kind | None) -> str:
    """The options of a task once it has this payload. `kind`: as it is defined now, `None` where nobody has.

    A key that was given with the submit stays, as does one of a task that was stored before the fields were noted.
    Raises `Invalid` where the kind does not take the payload.
    """
    options: dict[str, Any] = {} if task.options is None else encoding.decode(task.options)
    if kind is not None:
        kind.check_payload(payload.data, options.get("bindings", ()))
    text = payload.data.decode()
    unique = options.get("unique")
    if unique is not None and unique.get("by"):
        options["unique"] = unique | {"key": key_by(task.kind, unique["by"], text)}
    if kind is not None:
        options.pop("gates", None)
        gates = kind.gates(text, task.queue, task.priority)
        options |= {"gates": gates} if gates else {}
    return encoding.encode_sorted(options).decode()
