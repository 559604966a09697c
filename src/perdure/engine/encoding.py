"""From values to bodies and back: our own encoder, so that nothing is stored that some store cannot hold."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from perdure.domain import limits
from perdure.domain.task import Body
from perdure.errors import Invalid, TooLarge

_PLAIN_DEPTH = limits.JSON_MAX_DEPTH
_FLAT_BYTES = 2 * _PLAIN_DEPTH
"""So few bytes cannot be nested too deep: each level has two brackets."""
JSON = "json"


class Checked(msgspec.Struct, frozen=True, gc=False):
    """JSON that `encode` has made already, within this process. `schema`: what it is known to fit."""

    data: bytes
    schema: Mapping[str, Any] | None = None


def _encode_foreign(value: Any) -> Any:
    """Pydantic models and the like are encoded as what they dump; everything else is no JSON."""
    dump = getattr(type(value), "model_dump", None)
    if dump is not None:
        return dump(value, mode="json")
    raise NotImplementedError(f"values of type {type(value).__name__} cannot be encoded as JSON")


_encode = msgspec.json.Encoder(enc_hook=_encode_foreign).encode
_encode_sorted = msgspec.json.Encoder(enc_hook=_encode_foreign, order="deterministic").encode
_decode = msgspec.json.Decoder().decode


def encode(value: Any, field: str, limit_bytes: int) -> bytes:
    """`value` as UTF-8 JSON.

    Raises `Invalid` with the path in `field` for what is no JSON: NaN, infinities, lone surrogates, unknown types,
    more than 64 levels, integers of more than 4,300 digits; `TooLarge` over `limit_bytes`.
    """
    if type(value) is Checked:
        if len(value.data) > limit_bytes:
            raise too_large(field, limit_bytes, len(value.data))
        return value.data
    if type(value) is Raw:
        return _checked_text(bytes(value), field, limit_bytes)
    try:
        data = _encode(value)
    except (TypeError, ValueError, OverflowError, NotImplementedError, RecursionError) as error:
        raise _not_encodable(value, field, error) from None
    if len(data) > limit_bytes:
        raise too_large(field, limit_bytes, len(data))
    # `find` takes half the time of `in` here.
    if data.find(b"null") >= 0:
        _refuse_unreal(value, field)
    if len(data) > _FLAT_BYTES and data.count(b"[") + data.count(b"{") > _PLAIN_DEPTH:
        check_depth(_decode(data), field)
    return data


def encode_sorted(value: Any) -> bytes:
    """`value` as canonical JSON: keys in order, so that equal values have equal bytes."""
    return _encode_sorted(value)


def decode(data: bytes | str) -> Any:
    """The value of JSON that was checked before."""
    return _decode(data)


def body(value: Any, field: str, limit_bytes: int) -> Body:
    """`value` as a JSON body. Raises as `encode`."""
    return Body(encode(value, field, limit_bytes), JSON)


def as_said(value: Any, payload: str) -> str:
    """The payload by which the same request is known again: null where its `value` says none.

    Whatever its kind makes of that: a kind may be declared between two sendings of one request.
    """
    return "null" if payload == "{}" and encode(value, "payload", limits.PAYLOAD_MAX_BYTES) == b"null" else payload


def builtins(value: Any) -> Any:
    """`value` as dicts, lists, texts and numbers, without the way over JSON."""
    return msgspec.to_builtins(value, enc_hook=_encode_foreign, str_keys=True)


def too_large(field: str, limit_bytes: int, actual_bytes: int) -> TooLarge:
    """The refusal of a body over its limit."""
    return TooLarge(
        f"{field} is {actual_bytes:,} bytes, the limit is {limit_bytes:,}; "
        "store large data elsewhere and send its address",
        field=field,
        limit_bytes=limit_bytes,
        actual_bytes=actual_bytes,
    )


def check_depth(value: Any, field: str) -> None:
    """Refuse a value of more than `limits.JSON_MAX_DEPTH` levels."""
    level: list[Any] = [value] if type(value) in (dict, list) else []
    for _ in range(limits.JSON_MAX_DEPTH):
        below: list[Any] = []
        for each in level:
            inside = each.values() if type(each) is dict else each
            below += [one for one in inside if type(one) in (dict, list)]
        if not below:
            return
        level = below
    raise Invalid(f"{field} is nested more than {limits.JSON_MAX_DEPTH} levels deep", field=field)


def _checked_text(data: bytes, field: str, limit_bytes: int) -> bytes:
    if len(data) > limit_bytes:
        raise too_large(field, limit_bytes, len(data))
    try:
        value = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"{field} is not JSON that can be stored: {error}", field=field) from None
    if data.count(b"[") + data.count(b"{") > _PLAIN_DEPTH:
        check_depth(value, field)
    # What Python's parser lets pass and another does not (half a surrogate pair) is found by encoding it again.
    try:
        _encode(value)
    except (UnicodeEncodeError, ValueError) as error:
        raise _not_encodable(value, field, error) from None
    return data


def _refuse_unreal(value: Any, field: str) -> None:
    """msgspec writes NaN and infinities as null; they are refused instead."""
    path = _find(builtins(value), field, _is_unreal)
    if path is not None:
        raise Invalid(f"{path} is not a finite number, which JSON does not have", field=path)


def _not_encodable(value: Any, field: str, error: BaseException) -> Invalid:
    if isinstance(error, RecursionError):
        return Invalid(f"{field} is nested more than {limits.JSON_MAX_DEPTH} levels deep", field=field)
    path = _find(value, field, _is_not_encodable) or field
    if isinstance(error, UnicodeEncodeError):
        return Invalid(f"{path} has half a surrogate pair, which UTF-8 does not have", field=path)
    return Invalid(f"{path} cannot be encoded as JSON: {error}", field=path)


def _is_unreal(value: Any) -> bool:
    return type(value) is float and (value != value or value in (float("inf"), float("-inf")))


def _is_not_encodable(value: Any) -> bool:
    if isinstance(value, dict | list | tuple | set | frozenset):
        return False
    try:
        _encode(value)
    except Exception:
        return True
    return False


def _find(value: Any, path: str, at_fault: Any, depth: int = 0) -> str | None:
    """The path to the first value at fault, looked for through dicts and lists."""
    if depth > limits.JSON_MAX_DEPTH:
        return None
    if at_fault(value):
        return path
    if isinstance(value, Mapping):
        for key, each in value.items():
            if at_fault(key):
                return path
            found = _find(each, f"{path}.{key}", at_fault, depth + 1)
            if found is not None:
                return found
    elif isinstance(value, list | tuple | set | frozenset):
        for index, each in enumerate(value):
            found = _find(each, f"{path}[{index}]", at_fault, depth + 1)
            if found is not None:
                return found
    return None


def check_document(document: str) -> None:
    """Refuse what not every store can look into: the character NUL. Raises `Invalid` with the path."""
    if "\\u0000" not in document:
        return
    path = _find(decode(document), "", lambda each: isinstance(each, str) and "\0" in each)
    if path is not None:
        field = path.removeprefix(".") or "document"
        raise Invalid(f"{field} has the character NUL, which cannot be kept in a definition", field=field)


def shown_path(field: str, steps: list[str | int]) -> str:
    """`payload`, ["a", 1, "b"] -> `payload.a[1].b`."""
    return field + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps)


def quoted(text: str) -> str:
    """`text` in quotes, on one line, short enough for a message."""
    shown = json.dumps(text, ensure_ascii=False)
    return shown if len(shown) <= 80 else shown[:77] + '..."'
