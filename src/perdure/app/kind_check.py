"""What a kind says of itself, checked where it is written: long before a worker declares it to a store."""

from collections.abc import Mapping
from typing import Any

from perdure.engine.engine_settings import EngineSettings
from perdure.engine.kinds import Names, resolve
from perdure.engine.requests import KindDefinition
from perdure.errors import Invalid, Misuse


def check_kind(kind: object) -> None:
    """Raise `Misuse` for what cannot be the name of a kind, first of all for a function: `@app.task` without one."""
    if callable(kind):
        name = getattr(kind, "__name__", "...")
        raise Misuse(f'@app.task needs the kind of the task: write @app.task("{name}") above {name}')
    try:
        Names.fresh().kind(kind)
    except Invalid as problem:
        raise Misuse(f"{kind!r} cannot be a kind: {problem.message}", kind=kind) from None


def check_options(kind: str, said: Mapping[str, Any]) -> None:
    """Raise `Misuse`, with the kind's name, for the defaults that a store would refuse."""
    defaults = {name: said[name] for name in said if name in KindDefinition.__struct_fields__}
    try:
        resolve(KindDefinition(kind=kind, **defaults), EngineSettings(), Names.fresh())
    except Invalid as problem:
        raise Misuse(f"task {kind!r}: {problem.message}", kind=kind, field=problem.fields.get("field")) from None
