"""Ids from outside: checked before anything is asked of a store."""

import re

from perdure.errors import Malformed

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def parse(text: object, what: str = "task") -> str:
    """The id in its one form, lower case with dashes. Raises `Malformed` for anything that is not a UUID."""
    if isinstance(text, str):
        folded = text.lower()
        if _UUID.fullmatch(folded):
            return folded
    shown = repr(text)[:60]
    raise Malformed(f"{shown} is not the id of a {what}: ids look like 0198c5a4-7f3e-7abc-8def-0123456789ab", id=shown)
