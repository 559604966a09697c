"""From answers to errors: a problem's code finds the class among ours. Nothing is imported by a name from the wire."""

from collections.abc import Mapping
from typing import Any

import msgspec

from perdure import errors
from perdure.errors import InvariantBroken, Misuse, PerdureError, Refused, StoreUnreachable, Unavailable, rebuilt
from perdure.wire.problem import MEDIA_TYPE

_MEMBERS = frozenset({"type", "title", "status", "detail", "code", "request_id"})
SHOWN_CHARS = 200

CLASSES: dict[str, type[PerdureError]] = {
    each.code: each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, PerdureError) and "code" in vars(each)
}
"""The classes by their codes."""


def error_of(problem: Mapping[str, Any]) -> PerdureError:
    """The error that a problem tells. A code of a later version becomes the nearest class that its status allows."""
    status = problem.get("status")
    code = problem.get("code")
    cls = CLASSES.get(code) if isinstance(code, str) else None
    fields = {name: value for name, value in problem.items() if name not in _MEMBERS}
    if cls is None:
        cls = _class_by_status(status if isinstance(status, int) else 500)
        fields["problem"] = code
    if not issubclass(cls, Refused) and "request_id" in problem:
        fields["request_id"] = problem["request_id"]
    return rebuilt(cls, str(problem.get("detail") or problem.get("title") or code), fields)


def error_of_answer(status: int, content_type: str, body: bytes, url: str) -> PerdureError:
    """The error that an answer with a bad status is, also one that no gateway of ours gave."""
    if content_type.partition(";")[0].strip() == MEDIA_TYPE:
        try:
            problem = msgspec.json.decode(body, type=dict[str, Any])
        except msgspec.MsgspecError:
            pass
        else:
            return error_of({"status": status, **problem})
    shown = body[:SHOWN_CHARS].decode(errors="replace").strip()
    said = f"{url} answered {status} without a problem that is known here: {shown}"
    if status >= 500 or status in (408, 429):
        return StoreUnreachable(said, gateway=url, status=status)
    return Misuse(f"{said}. Is it the gateway's URL?", gateway=url)


def unreadable(url: str, error: Exception) -> PerdureError:
    """The error of a good answer that is not of the shape agreed on."""
    return InvariantBroken(f"the gateway at {url} gave an answer that this version cannot read: {error}", gateway=url)


def _class_by_status(status: int) -> type[PerdureError]:
    if status in (502, 503, 504, 507):
        return Unavailable
    if status == 404:
        return errors.NotFound
    if status == 429:
        return errors.Overloaded
    return Refused if 400 <= status < 500 else PerdureError
