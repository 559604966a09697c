"""Statements that walk along an index are written newest first; oldest first is the same text turned round."""

import re
from collections.abc import Iterable, Iterator

from perdure.errors import invariant

HEADER = "-- walks: both ways"
"""The line by which a statement says so. It walks behind `before` in descending order."""
OLDEST_FIRST = "_oldest"
"""What the name of the statement that walks the other way ends in."""

_BEHIND = re.compile(r"< (?=\(?(?::|%\()before)")


def with_both_ways(statements: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each statement by name, and after one that walks both ways the same oldest first."""
    for name, text in statements:
        yield name, text
        if HEADER in text:
            yield name + OLDEST_FIRST, _turned(text)


def _turned(text: str) -> str:
    ascending = text.replace(" DESC", " ASC")
    turned = _BEHIND.sub("> ", ascending)
    invariant(turned != ascending != text, "what walks both ways walks in descending order behind `before`")
    return turned
