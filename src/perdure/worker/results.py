"""Results on their way out of a handler and back to whoever waits for them."""

import types
import typing
from typing import Any

import msgspec

from perdure.domain.limits import RESULT_MAX_BYTES
from perdure.domain.task import Body
from perdure.engine import encoding
from perdure.errors import Refused
from perdure.worker.payload import decode_foreign
from perdure.worker.verdicts import Verdict

NULL = Body(b"null")


class BadResult(Exception):
    """What a handler returned cannot be kept as its result."""


def encode_result(value: Any, max_bytes: int = RESULT_MAX_BYTES, what: str = "result") -> Body:
    """A value as JSON. Raises `BadResult` when it cannot be written, or is larger than `max_bytes`."""
    if value is None:
        return NULL
    try:
        return Body(encoding.encode(value, what, max_bytes))
    except Refused as error:
        raise BadResult(error.message) from error
    except Exception as error:
        raise BadResult(
            f"the {what} of type {type(value).__qualname__} cannot be written as JSON: {error!r}"
        ) from error


def decode_result(body: Body, wanted: Any = Any) -> Any:
    """A result as type `wanted`; as plain JSON values where it does not fit, because a result that exists is never
    lost to a type that changed.
    """
    if wanted is None:
        wanted = type(None)
    try:
        return msgspec.json.decode(body.data, type=wanted, dec_hook=decode_foreign)
    except (msgspec.ValidationError, TypeError):
        return msgspec.json.decode(body.data)


def value_type(hint: Any) -> Any:
    """The type of the values that a handler with this return annotation may return: verdicts left out."""
    if typing.get_origin(hint) not in (typing.Union, types.UnionType):
        return Any if _is_verdict(hint) else hint
    values = tuple(each for each in typing.get_args(hint) if not _is_verdict(each))
    return typing.Union[values] if values else Any  # noqa: UP007


def _is_verdict(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Verdict)
