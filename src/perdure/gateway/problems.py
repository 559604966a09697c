"""From errors to answers: RFC 9457 problems, each type with a page that this gateway serves itself."""

import logging
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, NamedTuple

import msgspec

from perdure import errors, mistakes
from perdure.engine.bounded_text import shortened
from perdure.errors import Malformed, PerdureError, Refused, StoreFull, StoreUnusable, Unavailable
from perdure.gateway import access, refusals
from perdure.wire.problem import MEDIA_TYPE

_log = logging.getLogger("perdure.gateway")
_RESERVED = frozenset({"type", "title", "status", "detail", "code", "request_id", "replayed"})
_HIDDEN = frozenset({"path", "store", "traceback"})

UNSAID = {
    StoreFull: "the disk of the store is full; whoever runs the gateway has to free some space",
    Unavailable: "the store cannot be used at the moment; the same request may work later",
    StoreUnusable: "the store must not be used; whoever runs the gateway has to act",
}
INTERNAL = "something went wrong inside the gateway; its log has the facts under this request id"
RETRY_AFTER_SECONDS = 1
TEXT_MAX_CHARS = 2_000
"""A longer text of a problem, such as the name of a field that nobody knows, is cut."""


class Told(NamedTuple):
    """An answer that tells a problem."""

    status: int
    members: dict[str, Any]
    headers: list[tuple[bytes, bytes]]


def classes() -> Iterator[type[PerdureError]]:
    """Every class of error that can become an answer."""
    for module in (errors, refusals, access):
        for each in vars(module).values():
            if isinstance(each, type) and issubclass(each, PerdureError) and each.__module__ == module.__name__:
                yield each


def type_of(cls: type[PerdureError]) -> str:
    """The problem's type: a path of the gateway."""
    return f"/problems/{cls.code}"


def members_of(error: PerdureError) -> dict[str, Any]:
    """The members of the problem that an error is. Only what the request itself caused is told in words."""
    cls = type(error)
    members: dict[str, Any] = {
        "type": type_of(cls),
        "title": title_of(cls),
        "status": cls.status,
        "detail": _detail(error),
        "code": cls.code,
    }
    if isinstance(error, Refused):
        for name, value in error.fields.items():
            if name not in _RESERVED and name not in _HIDDEN:
                members[name] = _plain(value)
    return members


def tell(error: Exception, request_id: str) -> Told:
    """The answer to a request that raised. What is no fault of the request is logged with its request id."""
    if not isinstance(error, PerdureError):
        _log.error("request %s failed", request_id, exc_info=error)
        error = errors.InvariantBroken(INTERNAL)
    elif error.status >= 500:
        level = logging.WARNING if isinstance(error, Unavailable) else logging.ERROR
        _log.log(level, "request %s: %s: %s", request_id, error.code, error)
    members = members_of(error)
    members["request_id"] = request_id
    headers = [(b"content-type", MEDIA_TYPE.encode())]
    if error.status in (429, 503, 507):
        seconds = error.fields.get("retry_after", RETRY_AFTER_SECONDS)
        headers.append((b"retry-after", str(max(1, round(float(seconds)))).encode()))
    if "allow" in error.fields:
        headers.append((b"allow", ", ".join(error.fields["allow"]).encode()))
    return Told(error.status, members, headers)


def title_of(cls: type[PerdureError]) -> str:
    """The class's sentence: the same for every occurrence."""
    doc = (cls.__doc__ or "").strip().splitlines()[0]
    return doc.split("; ")[0].rstrip(".").replace("`", "")


def malformed_json(error: Exception, wanted: Any) -> Refused:
    """Why a body is no JSON of the wanted type, naming the field."""
    if isinstance(error, msgspec.ValidationError):
        return mistakes.refusal(error, wanted, "body")
    if isinstance(error, RecursionError):
        return Malformed("the body is nested too deep", field="body")
    return Malformed(f"the body is no JSON: {mistakes.unreadable(error)}", field="body")


def bad_parameter(error: msgspec.ValidationError, wanted: Any) -> Refused:
    """Why the parameters of a request are refused, naming the parameter."""
    message, field = mistakes.said(error, wanted, text=True)
    return Malformed(f"parameter {field}: {message}" if field else message, field=field or None)


def _detail(error: PerdureError) -> str:
    for cls, words in UNSAID.items():
        if isinstance(error, cls):
            return words
    return _cut(error.message) if isinstance(error, Refused) else INTERNAL


def _cut(text: str) -> str:
    return str(text) if len(text) <= TEXT_MAX_CHARS else shortened(text, TEXT_MAX_CHARS)


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _cut(value)
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return msgspec.to_builtins(value) if isinstance(value, msgspec.Struct) else str(value)


def page(code: str) -> bytes | None:
    """The page of a problem type; `None` for an unknown one."""
    for cls in classes():
        if cls.code == code:
            status = HTTPStatus(cls.status)
            doc = (cls.__doc__ or "").strip().replace("`", "")
            return (
                f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{code}</title>'
                f"<h1>{code}</h1><p>HTTP {status.value} {status.phrase}</p><p>{doc}</p>"
                '<p><a href="/docs">API reference</a></p></html>'
            ).encode()
    return None
