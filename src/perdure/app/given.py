"""What a program gives where something of another type belongs: refused where it is given, with what to give."""

from collections.abc import Iterable
from typing import Any

from perdure.errors import Misuse


def check_given(value: object, wanted: type | tuple[type, ...], name: str, right: str) -> None:
    """Raise `Misuse` unless `value` is a `wanted`; `right` says what to give."""
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is int):
        raise Misuse(f"{name} must be {right}, not {_shown(value)}", field=name)


def check_all_given(values: object, wanted: type, name: str, right: str) -> None:
    """Raise `Misuse` unless `values` can be gone through and each is a `wanted`."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise Misuse(f"{name} must be a list of {right}, not {_shown(values)}", field=name)
    for each in values:
        if not isinstance(each, wanted):
            raise Misuse(f"{name} must be a list of {right}; one is {_shown(each)}", field=name)


def _shown(value: Any) -> str:
    """Texts and numbers as they are, anything else by its type: it may be long, or private."""
    if value is None or isinstance(value, str | int | float):
        return repr(value) if len(repr(value)) <= 60 else f"a {type(value).__name__}"
    return f"a value of type {type(value).__name__}"
