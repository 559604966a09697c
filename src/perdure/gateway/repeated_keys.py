"""Keys that an object of a body has twice: readers of JSON do not agree on which of them counts, so it is refused.

The decoder drops all but the last, and so does a body that is decoded and encoded again have fewer colons then. Only a
body whose colons do not add up is read by the reader that knows where.
"""

import json
from typing import Any

import msgspec

from perdure.errors import Malformed

SHOWN_CHARS = 100
_ESCAPED_COLON = b"\\u003"
"""What may hide a colon."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def check_keys(data: bytes) -> None:
    """Raise `Malformed` that names the key if an object of the body, which is JSON, has one twice."""
    if b":" not in data:
        return
    try:
        plain = _ESCAPED_COLON not in data and _encode(_decode(data)).count(b":") == data.count(b":")
    except (msgspec.MsgspecError, ValueError, RecursionError):
        plain = False
    if plain:
        return
    try:
        json.loads(data, object_pairs_hook=_object, parse_int=_number, parse_float=_number)
    except (ValueError, RecursionError):
        # What is no JSON to this reader is told of by those who read on.
        return


def _object(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in pairs:
        if key in seen:
            shown = key[:SHOWN_CHARS].encode("utf-8", "replace").decode()
            raise Malformed(f"the key {shown!r} is there twice in one object: which of them counts?", field=shown)
        seen.add(key)


def _number(text: str) -> None:
    """However long it is."""
