"""What a request expects of what is stored: the headers `If-Match` and `If-None-Match`."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from perdure.engine.definitions import ANY, NONE
from perdure.errors import Malformed

_ETAG = re.compile(rb'(W/)?"([\x21\x23-\x7e]{0,100})"')


class Conditions(NamedTuple):
    """Each is a tag without its quotes, `*`, or `None` for what was not said. A weak tag never matches in `If-Match`:
    it is kept as what no tag of ours is.
    """

    if_match: str | None = None
    if_none_match: str | None = None


NO_CONDITIONS = Conditions()
NEVER = "never"
"""A tag that nothing has: `If-Match` and `If-None-Match: *` never hold together."""


def conditions_of(headers: Mapping[bytes, bytes]) -> Conditions:
    """The conditions of a request. Raises `Malformed` for what is neither `*` nor one ETag."""
    return Conditions(_tag(headers, b"if-match", "If-Match"), _tag(headers, b"if-none-match", "If-None-Match"))


def expected_of(conditions: Conditions) -> str | None:
    """What a PUT expects to be there. Raises `Malformed`."""
    if conditions.if_none_match is None:
        return conditions.if_match
    if conditions.if_none_match != ANY:
        raise Malformed("a PUT takes If-None-Match: * only", field="If-None-Match")
    return NONE if conditions.if_match is None else NEVER


def _tag(headers: Mapping[bytes, bytes], name: bytes, field: str) -> str | None:
    value = headers.get(name)
    if value is None:
        return None
    value = value.strip()
    if value == b"*":
        return "*"
    found = _ETAG.fullmatch(value)
    if found is None or not found[2]:
        raise Malformed(f'{field} must be * or one ETag in quotes, as "3-1f2e3d4c5b6a"', field=field)
    weak = "W/" if found[1] and name == b"if-match" else ""
    return weak + found[2].decode("ascii")
