"""Cursors: where the next page of a list begins, as text that only the list it came from takes back."""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec

from perdure.errors import Malformed

VERSION = 1
CURSOR_MAX_CHARS = 400

T = TypeVar("T")


class _Cursor(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    version: int
    order: str
    list: str
    position: msgspec.Raw


def fingerprint(*asked: Any) -> str:
    """Names a list by all that was asked for: a cursor of one list makes no sense in another."""
    return blake2b(msgspec.json.encode(asked), digest_size=6).hexdigest()


def write(order: str, list: str, position: object) -> str:
    """The cursor for what follows `position` in the list with that order and fingerprint."""
    cursor = _Cursor(VERSION, order, list, msgspec.Raw(msgspec.json.encode(position)))
    return urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def _check_position(position: object) -> None:
    """Raise `ValueError` for what no row can have: a store cannot be asked for it."""
    for each in position if isinstance(position, tuple) else (position,):
        if isinstance(each, int) and not -(2**63) <= each < 2**63:
            raise ValueError("a number over 64 bits")
        if isinstance(each, str) and "\x00" in each:
            raise ValueError("a text that no store has")


def read(text: str, order: str, list: str, shape: type[T]) -> T:
    """The position in `text`, as `shape`. Raises `Malformed` for anything that `write` did not make for this list."""
    try:
        if len(text) > CURSOR_MAX_CHARS:
            raise ValueError("too long")
        document = urlsafe_b64decode(text.encode("ascii") + b"=" * (-len(text) % 4))
        cursor = msgspec.json.decode(document, type=_Cursor)
        position = msgspec.json.decode(cursor.position, type=shape)
        _check_position(position)
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        raise Malformed(
            "this is no cursor of ours: begin again without one", field="cursor", cursor=text[:60]
        ) from None
    if (cursor.version, cursor.order, cursor.list) != (VERSION, order, list):
        raise Malformed(
            "this cursor belongs to another list: begin again without one", field="cursor", cursor=text[:60]
        )
    return position
