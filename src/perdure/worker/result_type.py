"""What a handler says that it returns, looked at before it runs: some types can never be kept as JSON."""

import sys
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import inspect

from perdure.errors import Misuse

_BUILT_ON = (dict, list, tuple, set, frozenset, BaseException)
"""What derives from these may be written all the same: `Counter` is, and an exception may be a dataclass."""


def check_result_type(kind: str, wanted: Any) -> None:
    """Raise `Misuse` where a value of this type, or of a type within it, could never be kept as a result.

    A class of the user's is let through, because one that derives from it may be a dataclass; so is what is abstract.
    """
    if wanted in (Any, None):
        return
    try:
        described = inspect.type_info(wanted)
    except Exception:  # What msgspec cannot read it may write: `int | list | set`, for one.
        return
    for each in _classes(described, set()):
        if _never_json(each):
            raise Misuse(
                f"the handler of {kind!r} returns a {each.__qualname__}, which cannot be kept as JSON: return what"
                " tells of it, such as its text, str(...), and say so in the annotation",
                kind=kind,
                type=f"{each.__module__}.{each.__qualname__}",
            )


def _classes(described: Any, seen: set[Any]) -> Iterator[Any]:
    """The classes in this type that msgspec does not know."""
    if isinstance(described, inspect.CustomType):
        yield described.cls
    elif isinstance(described, msgspec.Struct):
        if (cls := getattr(described, "cls", None)) is not None:
            if cls in seen:
                return
            seen.add(cls)
        for name in described.__struct_fields__:
            inner = getattr(described, name)
            for each in inner if isinstance(inner, tuple) else (inner,):
                yield from _classes(each, seen)


def _never_json(cls: Any) -> bool:
    """Whether no instance of it can be written: a concrete class of Python's own that is no value of JSON."""
    return (
        type(cls) is type
        and cls is not object
        and cls.__module__ != "typing"
        and cls.__module__.partition(".")[0] in sys.stdlib_module_names
        and not issubclass(cls, _BUILT_ON)
    )
