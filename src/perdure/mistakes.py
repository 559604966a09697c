"""What a decoder found wrong with a value, in words that say what would be right."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from perdure.domain import ids
from perdure.domain.likeness import did_you_mean
from perdure.errors import Invalid

SHOWN_CHOICES = 30
"""Of more than so many only the nearest is told."""

EXAMPLE_INSTANT = "2026-12-01T08:00:00Z"

_NOTHING_SAID: Mapping[str, Any] = MappingProxyType({})
_TEXTS = {
    "uuid": f"an id like {ids.EXAMPLE}",
    "cursor": "the cursor that an earlier page told",
    "cron": "five fields of a cron expression, or six with seconds in front",
    "time-zone": "the name of a time zone like Europe/Berlin",
    "sha256": "64 hexadecimal digits in lower case",
}
"""What a text has to be, by its format."""
_STEP = re.compile(r"\.([^.\[]+)|\[(?:\d+|\.\.\.)\]")
_PLACE = re.compile(r" - at `(?:key` in `)?\$(?P<path>[^`]*)`$")
_CHOICE = re.compile(r"Invalid (?:enum )?value (.*)", re.DOTALL)
_GIVEN = re.compile(r", got `(\w+)`")
_UNKNOWN = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"Object missing required field `(.*)`", re.DOTALL)

_MALFORMED = re.compile(r"JSON is malformed: (.*) \(byte (\d+)\)")
_UNREADABLE = {
    "Input data was truncated": "it ends before it is complete",
    "Invalid UTF-8 encoded string": "it is not UTF-8",
}
_GIVEN_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number with a fraction",
    "int": "a whole number",
    "null": "null",
    "object": "an object",
    "str": "text",
}
"""What a decoder calls what it found."""
_CHOSEN = (inspect.EnumType, inspect.LiteralType)


def said(fault: msgspec.ValidationError, wanted: Any, *, text: bool = False) -> tuple[str, str]:
    """What is wrong with a value that was to be a `wanted`, and its path (`tasks[0].kind`; empty: the value itself).

    `text`: all values came as text, in which numbers and instants were looked for.
    """
    message, path = _parts(str(fault))
    place = path.removeprefix(".")
    if unknown := _UNKNOWN.fullmatch(message):
        fields = {name for told in _at(wanted, path) for name in _fields(told.type)}
        if unknown[1] in fields:
            return f"there is no field {unknown[1]!r} beside this {_tag_field(_at(wanted, path))}", _under(
                place, unknown[1]
            )
        return unknown_field(unknown[1], fields), _under(place, unknown[1])
    if missing := _MISSING.fullmatch(message):
        right = _wanted(_at(wanted, f"{path}.{missing[1]}"))
        return f"it is missing; it must be {right}" if right else "it is missing", _under(place, missing[1])
    told = _at(wanted, path)
    if choice := _CHOICE.fullmatch(message):
        choices = sorted({str(each) for one in told for each in _choices(one.type)})
        return f"there is no {choice[1]} here{_instead(choice[1].strip(chr(39)), choices)}", place
    given = _GIVEN.search(message)
    instead = _GIVEN_WORDS.get(given[1], "that") if given is not None and not text else ""
    return f"must be {_wanted(told) or 'something else'}{', not ' if instead else ''}{instead}", place


def _parts(fault: str) -> tuple[str, str]:
    """The message of a fault, and the path in it; of a key that of its object. Empty: the value itself."""
    found = _PLACE.search(fault)
    return (fault, "") if found is None else (fault[: found.start()], found["path"])


def unreadable(fault: Exception) -> str:
    """Why a text is no JSON, in words that do not name the decoder's parts."""
    words = str(fault)
    if malformed := _MALFORMED.fullmatch(words):
        return f"{malformed[1]} at byte {malformed[2]}"
    return _UNREADABLE.get(words, "it cannot be read")


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
    if meant := did_you_mean(given, choices):
        return meant
    return f"; there is {', '.join(choices)}" if 0 < len(choices) <= SHOWN_CHOICES else ""


class _Told(NamedTuple):
    """A type that a value may have, with what is said about it in the words of a JSON Schema."""

    type: inspect.Type
    schema: Mapping[str, Any]


def _at(wanted: Any, path: str) -> list[_Told]:
    """The types that a value at this path may have."""
    found = list(_plain(_type(wanted)))
    for step in _STEP.finditer(path):
        found = [below for told in found for each in _below(told.type, step[1]) for below in _plain(each)]
    return found


@cache
def _type(wanted: Any) -> inspect.Type:
    return inspect.type_info(wanted)


def _plain(told: inspect.Type, schema: Mapping[str, Any] = _NOTHING_SAID) -> Iterator[_Told]:
    """A type apart from what is said about it; of a union each."""
    if isinstance(told, inspect.Metadata):
        yield from _plain(told.type, {**schema, **(told.extra_json_schema or {})})
    elif isinstance(told, inspect.UnionType):
        for each in told.types:
            yield from _plain(each, schema)
    else:
        yield _Told(told, schema)


def _below(told: inspect.Type, name: str | None) -> Iterator[inspect.Type]:
    """The types of what lies in a value: of the field of that name, or of its items or values."""
    if isinstance(told, inspect.StructType) and told.tag_field == name and told.tag is not None:
        yield inspect.LiteralType((told.tag,))
    elif isinstance(told, inspect.StructType | inspect.DataclassType | inspect.TypedDictType):
        yield from (field.type for field in told.fields if field.encode_name == name)
    elif isinstance(told, inspect.DictType):
        yield told.value_type
    elif isinstance(told, inspect.TupleType):
        yield from told.item_types
    elif name is None and hasattr(told, "item_type"):
        yield told.item_type


def _tag_field(told: list[_Told]) -> str:
    """The field by which it is told which of several objects one is."""
    return next(
        each.type.tag_field for each in told if isinstance(each.type, inspect.StructType) and each.type.tag_field
    )


def _fields(told: inspect.Type) -> Iterator[str]:
    if isinstance(told, inspect.StructType | inspect.DataclassType | inspect.TypedDictType):
        yield from (field.encode_name for field in told.fields)


def _choices(told: inspect.Type) -> Iterator[object]:
    if isinstance(told, inspect.EnumType):
        yield from (each.value for each in told.cls)
    elif isinstance(told, inspect.LiteralType):
        yield from told.values


def _wanted(told: list[_Told]) -> str:
    """Types in words, of which a value may have any; null is not told where anything else is."""
    choices = sorted({str(choice) for each in told for choice in _choices(each.type)})
    rest = [each for each in told if not isinstance(each.type, (inspect.NoneType, *_CHOSEN))]
    words = dict.fromkeys([_one_of(choices)] if choices else [])
    words.update(dict.fromkeys(_words(*each) for each in rest))
    return " or ".join(filter(None, words)) or ("null" if told else "")


def _words(told: inspect.Type, schema: Mapping[str, Any]) -> str:
    """A type with its bounds, in words."""
    match told:
        case inspect.BoolType():
            return "true or false"
        case inspect.IntType():
            return "a whole number" + _between(*_bounds(told, schema))
        case inspect.FloatType():
            return "a number" + _between(*_bounds(told, schema))
        case inspect.StrType():
            return _text(told, schema)
        case inspect.DateTimeType():
            return f"an instant with a time zone like {EXAMPLE_INSTANT}"
        case inspect.BytesType():
            return "text in base64"
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            low, high = schema.get("minItems", told.min_length), schema.get("maxItems", told.max_length)
            return "a list" + _between(low, high, " of")
        case inspect.TupleType():
            return f"a list of {len(told.item_types)}"
        case inspect.DictType() | inspect.StructType() | inspect.DataclassType() | inspect.TypedDictType():
            return "an object"
        case _:
            return "any JSON value"


def _text(told: inspect.StrType, schema: Mapping[str, Any]) -> str:
    low, high = schema.get("minLength", told.min_length), schema.get("maxLength", told.max_length)
    what = next((_TEXTS[each] for each in (schema.get("format"), schema.get("title")) if each in _TEXTS), "text")
    if what != "text":
        return what
    return what + (_between(low, high, " of") + " characters" if low or high else "")


def _bounds(told: inspect.IntType | inspect.FloatType, schema: Mapping[str, Any]) -> tuple[Any, Any]:
    return schema.get("minimum", told.ge), schema.get("maximum", told.le)


def _between(low: float | None, high: float | None, of: str = "") -> str:
    if low is not None and high is not None:
        return f"{of or ' from'} {_number(low)} to {_number(high)}"
    if high is not None:
        return f"{of} at most {_number(high)}"
    return "" if low is None else f"{of} at least {_number(low)}"


def _number(value: float) -> str:
    """A bound as people write it: neither `1e+06` nor `60.0`."""
    return str(int(value)) if value == int(value) else str(value)


def _one_of(choices: list[str]) -> str:
    return f"one of {', '.join(choices)}" if len(choices) <= SHOWN_CHOICES else "text"
