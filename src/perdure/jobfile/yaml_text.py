"""YAML as data: the JSON values of YAML 1.2, no tags, no code, no repeated keys, every value with its place.

The parser's events are taken one by one, so that depth and size are bounded before anything is built.
"""

import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

import yaml

from perdure.domain.limits import INTEGER_MAX_DIGITS, JSON_MAX_DEPTH
from perdure.jobfile.document import Document, Path, Place, malformed

DOCUMENT_MAX_VALUES = 5_000_000
"""How many values a file may have once its aliases are written out: aliases of aliases grow without bound."""

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

Places = dict[Path, Place]


def parse_yaml(name: str, text: str) -> Document:
    """The one document of a YAML file. Raises `Malformed` with the place."""
    reader = _Reader(name)
    try:
        value = reader.document(iter(yaml.parse(text, Loader=_LOADER)))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise malformed(name, _place(mark) if mark else None, error.problem or "this is not YAML") from None
    except yaml.YAMLError as error:
        raise malformed(name, None, " ".join(str(error).split())) from None
    return Document(name, value, lambda: reader.places)


def _place(mark: Any) -> Place:
    return Place(mark.line + 1, mark.column + 1)


class _Reader:
    """Builds values from events. One use."""

    def __init__(self, name: str) -> None:
        self.places: Places = {}
        self._name = name
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._values = 0

    def document(self, events: Iterator[Any]) -> Any:
        value, documents = None, 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._refuse(event, "the file has a second document; put one job in one file")
                value = self._value(events, next(events), ())
        if not documents:
            raise malformed(self._name, None, "there is nothing in it")
        return value

    def _value(self, events: Iterator[Any], event: Any, path: Path) -> Any:
        if len(path) > JSON_MAX_DEPTH:
            self._refuse(event, f"values are nested deeper than {JSON_MAX_DEPTH}")
        self.places[path] = _place(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event)
        if event.tag is not None and not (isinstance(event, yaml.ScalarEvent) and event.tag == "!"):
            self._refuse(event, f"the tag {event.tag} is not understood; write the plain value")
        before = self._values
        self._count(event, 1)
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            value = self._sequence(events, path)
        else:
            value = self._mapping(events, path)
        if event.anchor is not None:
            self._anchors[event.anchor] = value, self._values - before
        return value

    def _alias(self, event: Any) -> Any:
        if event.anchor not in self._anchors:
            self._refuse(event, f"*{event.anchor} refers to nothing before it")
        value, size = self._anchors[event.anchor]
        self._count(event, size)
        return value

    def _count(self, event: Any, values: int) -> None:
        self._values += values
        if self._values > DOCUMENT_MAX_VALUES:
            self._refuse(event, f"the file has more than {DOCUMENT_MAX_VALUES} values, aliases written out")

    def _sequence(self, events: Iterator[Any], path: Path) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            values.append(self._value(events, event, (*path, len(values))))
        return values

    def _mapping(self, events: Iterator[Any], path: Path) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            key = self._key(event)
            if key in values:
                first = self.places[(*path, key)]
                self._refuse(event, f"the key {key!r} is there twice; the first one is on line {first.line}")
            values[key] = self._value(events, next(events), (*path, key))
            self.places[(*path, key)] = _place(event.start_mark)
        return values

    def _key(self, event: Any) -> str:
        if not isinstance(event, yaml.ScalarEvent):
            self._refuse(event, "a key must be plain text")
        key = self._scalar(event)
        if not isinstance(key, str):
            self._refuse(event, f"the key {event.value} must be text; put it in quotes")
        return key

    def _scalar(self, event: Any) -> Any:
        text = event.value
        if event.style or event.tag == "!":
            return text
        if _NULL.fullmatch(text):
            return None
        if _TRUE.fullmatch(text):
            return True
        if _FALSE.fullmatch(text):
            return False
        if _INTEGER.fullmatch(text):
            return self._integer(event)
        if _NOT_FINITE.fullmatch(text):
            self._refuse(event, f"{text} has no JSON form; use a finite number")
        if _FLOAT.fullmatch(text):
            value = float(text)
            if not math.isfinite(value):
                self._refuse(event, f"the number {text[:40]} is too large")
            return value
        return text

    def _integer(self, event: Any) -> int:
        text = event.value
        if len(text) > INTEGER_MAX_DIGITS:
            self._refuse(event, f"a number has at most {INTEGER_MAX_DIGITS} digits, not {len(text)}")
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text, 10)

    def _refuse(self, event: Any, fact: str) -> NoReturn:
        raise malformed(self._name, _place(event.start_mark), fact)
