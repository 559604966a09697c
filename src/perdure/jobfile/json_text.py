"""JSON, strictly: no repeated keys, no NaN, and every error with its place."""

import json
import math
from collections.abc import Mapping
from functools import cache
from typing import Any

from perdure.domain.limits import INTEGER_MAX_DIGITS
from perdure.errors import Malformed
from perdure.jobfile.document import Document, Path, Place, malformed, place_of_offset
from perdure.jobfile.yaml_text import parse_yaml


class _Unfit(Exception):
    """Valid to the parser, not to us; the reader of places says where."""


def parse_json(name: str, text: str) -> Document:
    """The value of a JSON file. Raises `Malformed` with the place."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_integer,
        )
    except json.JSONDecodeError as error:
        if not text.strip():
            raise malformed(name, None, "there is nothing in it") from None
        raise malformed(name, place_of_offset(text, error.pos), f"this is not JSON: {_lowered(error.msg)}") from None
    except RecursionError:
        raise malformed(name, None, "values are nested too deep") from None
    except _Unfit as error:
        # JSON is YAML: the reader that keeps places refuses the same thing where it stands.
        parse_yaml(name, text)
        raise malformed(name, None, str(error)) from None

    @cache
    def places() -> Mapping[Path, Place]:
        return _places(name, text)

    return Document(name, value, places)


def _places(name: str, text: str) -> Mapping[Path, Place]:
    """Where everything stands, by reading the JSON as the YAML that it is; nothing where YAML disagrees."""
    try:
        return parse_yaml(name, text).all_places()
    except Malformed:
        return {}


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _Unfit(f"the key {twice!r} is there twice")
    return value


def _constant(text: str) -> float:
    raise _Unfit(f"{text} has no JSON form; use a finite number")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _Unfit(f"the number {text[:40]} is too large")
    return value


def _integer(text: str) -> int:
    if len(text) > INTEGER_MAX_DIGITS:
        raise _Unfit(f"a number has at most {INTEGER_MAX_DIGITS} digits, not {len(text)}")
    return int(text)


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]
