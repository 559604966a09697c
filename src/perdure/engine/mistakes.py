"""What a decoder found wrong with a value, in words that say what would be right."""

import difflib
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from perdure.errors import Invalid

SHOWN_CHOICES = 30
"""Of more than so many only the nearest is told."""
GIVEN_MAX_CHARS = 100
"""Nothing is near to what is longer, and comparing costs time for each character."""

_STEP = re.compile(r"\.([^.\[]+)|\[(?:\d+|\.\.\.)\]")
_ENUM = re.compile(r"Invalid enum value (.*)", re.DOTALL)
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)


def said(fault: msgspec.ValidationError, wanted: Any) -> tuple[str, str]:
    """What is wrong with a value that was to be a `wanted`, and its path (`tasks[0].kind`; empty: the value itself)."""
    message, _, at = str(fault).partition(" - at `")
    path = at.rstrip("`").removeprefix("$")
    place = path.removeprefix(".")
    if unknown := _UNKNOWN.fullmatch(message):
        fields = {name for told in _at(wanted, path) for name in _fields(told)}
        return unknown_field(unknown[1], fields), _under(place, unknown[1])
    if missing := _MISSING.fullmatch(message):
        return "it is missing", _under(place, missing[1])
    if enum := _ENUM.fullmatch(message):
        choices = sorted({str(choice) for told in _at(wanted, path) for choice in _choices(told)})
        return f"there is no {enum[1]} here{_instead(enum[1].strip(chr(39)), choices)}", place
    return message, place


def refusal(fault: msgspec.ValidationError, wanted: Any, whole: str) -> Invalid:
    """The same as an error with its field; `whole` names the value itself."""
    message, path = said(fault, wanted)
    field = path or whole
    return Invalid(f"{field}: {message}", field=field)


def unknown_field(name: str, fields: Iterable[str]) -> str:
    """What is wrong with a field that an object does not have."""
    return f"there is no field {name!r}{_instead(name, sorted(fields))}"


def _under(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _instead(given: str, choices: list[str]) -> str:
    near = difflib.get_close_matches(given, choices, 1) if len(given) <= GIVEN_MAX_CHARS else ()
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there is {', '.join(choices)}" if 0 < len(choices) <= SHOWN_CHOICES else ""


def _at(wanted: Any, path: str) -> list[inspect.Type]:
    """The types that a value at this path may have."""
    found = list(_plain(_type(wanted)))
    for step in _STEP.finditer(path):
        found = [below for told in found for each in _below(told, step[1]) for below in _plain(each)]
    return found


@cache
def _type(wanted: Any) -> inspect.Type:
    return inspect.type_info(wanted)


def _plain(told: inspect.Type) -> Iterator[inspect.Type]:
    """A type without what is said about it; of a union each."""
    if isinstance(told, inspect.Metadata):
        yield from _plain(told.type)
    elif isinstance(told, inspect.UnionType):
        for each in told.types:
            yield from _plain(each)
    else:
        yield told


def _below(told: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    """The types of what lies in a value: of the field of that name, or of its items or values."""
    if isinstance(told, inspect.StructType | inspect.DataclassType | inspect.TypedDictType):
        yield from (field.type for field in told.fields if field.encode_name == name)
    elif isinstance(told, inspect.DictType):
        yield told.value_type
    elif isinstance(told, inspect.TupleType):
        yield from told.item_types
    elif name is None and hasattr(told, "item_type"):
        yield told.item_type


def _fields(told: inspect.Type) -> Iterator[str]:
    if isinstance(told, inspect.StructType | inspect.DataclassType | inspect.TypedDictType):
        yield from (field.encode_name for field in told.fields)


def _choices(told: inspect.Type) -> Iterator[object]:
    if isinstance(told, inspect.EnumType):
        yield from (each.value for each in told.cls)
    elif isinstance(told, inspect.LiteralType):
        yield from told.values
