"""Writes into the schema of a handler's payload which of its texts are read as dates, instants, ids."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import inspect

from perdure.engine.read_as import KEYWORD

_WORDS: Mapping[type, str] = {
    inspect.BytesType: "base64",
    inspect.ByteArrayType: "base64",
    inspect.MemoryViewType: "base64",
    inspect.DateType: "date",
    inspect.DateTimeType: "datetime",
    inspect.DecimalType: "decimal",
    inspect.TimeDeltaType: "duration",
    inspect.TimeType: "time",
    inspect.UUIDType: "uuid",
}
_OBJECTS = (inspect.StructType, inspect.DataclassType, inspect.TypedDictType, inspect.NamedTupleType)
_LISTS = (
    inspect.ListType,
    inspect.VarTupleType,
    inspect.SetType,
    inspect.FrozenSetType,
    inspect.CollectionType,
)
_REF = "#/$defs/"


def say_what_is_read(wanted: Any, schema: dict[str, Any], components: Mapping[str, dict[str, Any]]) -> None:
    """Add the keyword to the schema that msgspec made of a type, and to its components, wherever a type reads a text.

    What a schema has of elsewhere (a Pydantic model, a user's own words about a text) is left as it is.
    """
    _Walk(components).at(inspect.type_info(wanted), schema)


class _Walk:
    """Goes through a type and its schema side by side, into each component once."""

    def __init__(self, components: Mapping[str, dict[str, Any]]) -> None:
        self._components = components
        self._seen: set[str] = set()

    def at(self, told: inspect.Type, schema: Any) -> None:
        while isinstance(told, inspect.Metadata):
            told = told.type
        if not isinstance(schema, dict):
            return
        name = str(schema.get("$ref", "")).removeprefix(_REF)
        if name in self._components:
            self._into(told, name)
        elif type(told) in _WORDS:
            _mark(told, schema)
        else:
            for inner, below in self._below(told, schema):
                self.at(inner, below)

    def _into(self, told: inspect.Type, name: str) -> None:
        if name in self._seen or not isinstance(told, _OBJECTS):
            return
        self._seen.add(name)
        schema = self._components[name]
        properties = schema.get("properties", {})
        listed = schema.get("prefixItems", [])
        for number, field in enumerate(told.fields):
            if field.encode_name in properties:
                self.at(field.type, properties[field.encode_name])
            elif number < len(listed):
                self.at(field.type, listed[number])

    def _below(self, told: inspect.Type, schema: dict[str, Any]) -> Iterator[tuple[inspect.Type, Any]]:
        if isinstance(told, _LISTS):
            yield told.item_type, schema.get("items")
        elif isinstance(told, inspect.TupleType):
            yield from zip(told.item_types, schema.get("prefixItems", []), strict=False)
        elif isinstance(told, inspect.DictType):
            if (key := _plain(told.key_type)) and type(key) in _WORDS:
                _mark(key, schema.setdefault("propertyNames", {}))
            yield told.value_type, schema.get("additionalProperties")
        elif isinstance(told, inspect.UnionType):
            yield from self._choices(told, schema)

    def _choices(self, told: inspect.UnionType, schema: dict[str, Any]) -> Iterator[tuple[inspect.Type, Any]]:
        """Each type of a union with its schema: at most one of them is a text, one a list and one a mapping."""
        options = list(_options(schema))
        for each in told.types:
            plain = _plain(each)
            for option in options:
                name = str(option.get("$ref", "")).removeprefix(_REF)
                if isinstance(plain, _OBJECTS):
                    if name in self._components and _is_of(plain, self._components[name]):
                        yield plain, option
                elif not name and option.get("type") == _type_of(plain) and KEYWORD not in option:
                    yield plain, option


def _mark(told: inspect.Type, schema: dict[str, Any]) -> None:
    word = _WORDS[type(told)]
    zone = getattr(told, "tz", None)
    schema[KEYWORD] = word if zone is None else f"{word} {'with' if zone else 'without'} a zone"
    if word == "decimal" and schema.get("type") == "string":
        schema["type"] = ["string", "number"]  # It takes both.


def _plain(told: inspect.Type) -> inspect.Type:
    while isinstance(told, inspect.Metadata):
        told = told.type
    return told


def _options(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    nested = schema.get("anyOf")
    if not isinstance(nested, list):
        yield schema
        return
    for each in nested:
        yield from _options(each)


def _type_of(told: inspect.Type) -> str | None:
    if type(told) in _WORDS:
        return "string"
    if isinstance(told, (*_LISTS, inspect.TupleType)):
        return "array"
    return "object" if isinstance(told, inspect.DictType) else None


def _is_of(told: Any, schema: Mapping[str, Any]) -> bool:
    named = {each.encode_name for each in told.fields} == {*schema.get("properties", {})} - _tags(told)
    return named and schema.get("title") == told.cls.__name__


def _tags(told: Any) -> set[str]:
    tag = getattr(told, "tag_field", None)
    return set() if tag is None else {tag}
