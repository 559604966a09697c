"""One request as its handler sees it, and what the handler answers."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Sequence
from typing import Any, NamedTuple, TypeVar
from urllib.parse import parse_qsl

import msgspec

from perdure.engine.requests import Principal
from perdure.errors import Malformed, Refused, TooLarge
from perdure.gateway import problems
from perdure.gateway.conditions import NO_CONDITIONS, Conditions
from perdure.gateway.limits import GatewayLimits
from perdure.gateway.nested import Nested
from perdure.gateway.refusals import TooSlow, UnsupportedMedia
from perdure.gateway.repeated_keys import check_keys
from perdure.gateway.route import Route
from perdure.gateway.turns import Turn
from perdure.gateway.whole_numbers import mended

T = TypeVar("T")
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

KEY_MAX_BYTES = 255
PARAMETERS_MAX = 200
_KEY_TOKEN = re.compile(rb"(?<!\\)\"(?=\s*:)")

_NOT_DECODED = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, ValueError)
_any_json = msgspec.json.Decoder(msgspec.Raw).decode

encode = msgspec.json.Encoder().encode


class Answer(NamedTuple):
    """What a handler answers: a body to be encoded (`None`: no body), its status, headers beside the usual ones."""

    body: Any
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = ()
    refused: Sequence[Exception] = ()
    """For what some of its items were refused."""


class Request:
    """One request, decoded. `body` and `query` are of the route's types."""

    __slots__ = ("_receive", "body", "by", "conditions", "key", "path", "query", "trace", "turn")

    def __init__(
        self,
        by: Principal,
        path: Mapping[str, str],
        query: Any,
        body: Any,
        key: str | None,
        receive: Receive,
        conditions: Conditions = NO_CONDITIONS,
        trace: str | None = None,
        turn: Turn | None = None,
    ) -> None:
        self.by = by
        self.path = path
        self.query = query
        self.body = body
        self.key = key
        """The header `Idempotency-Key`."""
        self.conditions = conditions
        self.trace = trace
        """The header `traceparent`."""
        self.turn = turn
        """The turn that it has among the requests of other clients; `None` where there are none."""
        self._receive = receive

    async def gone(self) -> None:
        """Return when the client has gone away. Only for requests whose body was read."""
        while (await self._receive())["type"] != "http.disconnect":
            continue


class Reading:
    """How the requests of one route are read: its decoders are made once."""

    __slots__ = ("_decode", "_limits", "_lists", "_nested", "_route", "_words", "max_bytes", "takes_body")

    def __init__(self, route: Route, limits: GatewayLimits) -> None:
        self._route = route
        self._limits = limits
        self.takes_body = route.body is not None
        self._decode = msgspec.json.Decoder(route.body).decode if route.body is not None else None
        self._nested = Nested(route.body) if route.body is not None else None
        self.max_bytes = min(route.max_bytes, limits.body_max_bytes)
        fields = msgspec.structs.fields(route.query) if route.query is not None else ()
        self._lists = frozenset(
            field.encode_name for field in fields if field.default_factory is list or field.default == []
        )
        self._words = route.query

    def query(self, text: bytes) -> Any:
        """The parameters. Raises `Malformed` with the parameter's name."""
        if self._words is None:
            if text:
                raise Malformed("this path takes no parameters", field=_first_name(text))
            return None
        return self._query(text)

    def _query(self, text: bytes) -> Any:
        said: dict[str, Any] = {}
        try:
            pairs = parse_qsl(
                text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=PARAMETERS_MAX
            )
        except (ValueError, UnicodeDecodeError):
            raise Malformed("the parameters are not text in UTF-8, or too many", field="query") from None
        for name, value in pairs:
            if name in self._lists:
                said.setdefault(name, []).append(value)
            elif name in said:
                raise Malformed(f"parameter {name} is given twice", field=name)
            else:
                said[name] = value
        try:
            return msgspec.convert(said, self._words, strict=False)
        except msgspec.ValidationError as error:
            raise problems.bad_parameter(error, self._words) from None

    def body(self, headers: Mapping[bytes, bytes], data: bytes) -> Any:
        """The body that was received, decoded. Raises a `Refused`."""
        if self._decode is None:
            if data and data.strip() not in (b"", b"{}"):
                raise Malformed("this path takes no body", field="body")
            return None
        if not data and self._route.optional:
            return self._route.body()
        _check_media(headers)
        if not data.isascii():
            _check_utf8(data)
        if data.count(b":") > self._limits.json_max_keys:
            self._check_keys(data)
        try:
            body = self._decoded(data)
        except _NOT_DECODED as error:
            raise problems.malformed_json(_first_fault(data, error), self._route.body) from None
        if self._route.in_turn:
            check_keys(data)
        return body

    def _decoded(self, data: bytes) -> Any:
        assert self._decode is not None
        assert self._nested is not None
        try:
            body = self._decode(data)
        except msgspec.ValidationError as fault:
            if "got `float`" not in str(fault):
                raise
            body = mended(data, fault, self._decode)
        except Refused as fault:
            body = self._nested.items(data, fault)
        self._nested.check(data)
        return body

    async def received(self, headers: Mapping[bytes, bytes], receive: Receive) -> bytes:
        """The body as it came. Raises a `Refused` before more than `max_bytes` were kept."""
        said = headers.get(b"content-length")
        if said is not None and (not said.isdigit() or len(said) > 15 or int(said) > self.max_bytes):
            raise self._too_large(int(said) if said.isdigit() and len(said) <= 15 else None)
        message = await receive()
        if not message.get("more_body", False):
            data: bytes = message.get("body", b"")
            self._within(data)
            return data
        try:
            async with asyncio.timeout(self._limits.receive_timeout):
                return await self._gathered(message, receive)
        except TimeoutError:
            raise TooSlow(f"the body did not arrive within {self._limits.receive_timeout:g} s") from None

    async def _gathered(self, message: Message, receive: Receive) -> bytes:
        pieces = bytearray(message.get("body", b""))
        while message.get("more_body", False):
            self._within(pieces)
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            pieces += message.get("body", b"")
        self._within(pieces)
        return bytes(pieces)

    def _within(self, data: bytes | bytearray) -> None:
        if len(data) > self.max_bytes:
            raise self._too_large(len(data))

    def _too_large(self, actual: int | None) -> TooLarge:
        return TooLarge(
            f"the body is over {self.max_bytes:,} bytes: send less at a time",
            field="body",
            limit_bytes=self.max_bytes,
            actual_bytes=actual,
        )

    def _check_keys(self, data: bytes) -> None:
        keys = sum(1 for _ in _KEY_TOKEN.finditer(data))
        if keys > self._limits.json_max_keys:
            raise TooLarge(
                f"the body has {keys:,} keys, the limit is {self._limits.json_max_keys:,}: send less at a time",
                field="body",
            )


class ClientGone(Exception):
    """The client went away before its request was complete: there is nobody to answer."""


def idempotency_key(route: Route, headers: Mapping[bytes, bytes]) -> str | None:
    """The header's value. Raises `Malformed` when it is empty, too long or no text."""
    value = headers.get(b"idempotency-key")
    if value is None or not route.keyed:
        return None
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if not 1 <= len(value) <= KEY_MAX_BYTES or not text.isprintable() or not text:
        which = f"this is {len(value)} bytes" if not value or (text and text.isprintable()) else "this has other bytes"
        raise Malformed(
            f"Idempotency-Key must be 1 to {KEY_MAX_BYTES} bytes of printable text in UTF-8: {which}",
            field="Idempotency-Key",
        )
    return text


def traceparent(route: Route, headers: Mapping[bytes, bytes]) -> str | None:
    """The header's value, for routes that submit. Whether it is one is seen later: an invalid one is dropped."""
    value = headers.get(b"traceparent")
    submits = route.keyed and route.body is not None
    return value.decode("latin-1") if value is not None and submits else None


def _check_utf8(data: bytes) -> None:
    """Bodies that are kept as they came are not looked at by the decoder."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        raise Malformed(f"the body is not UTF-8 at byte {error.start}", field="body") from None


def _first_fault(data: bytes, found: Exception) -> Exception:
    """What is no JSON at all is told as that, even if a wrong field comes before the place."""
    if isinstance(found, msgspec.ValidationError):
        try:
            _any_json(data)
        except _NOT_DECODED as error:
            return error
    return found


def _check_media(headers: Mapping[bytes, bytes]) -> None:
    encoding = headers.get(b"content-encoding", b"identity").strip().lower()
    if encoding not in (b"identity", b""):
        raise UnsupportedMedia("compressed bodies are not taken: send the body as it is", field="Content-Encoding")
    media = headers.get(b"content-type")
    if media == b"application/json":
        return
    if not _is_json(media or b""):
        raise UnsupportedMedia("the body must be JSON: send Content-Type: application/json", field="Content-Type")


def _is_json(media: bytes) -> bool:
    name, _, rest = media.lower().partition(b";")
    name = name.strip()
    charset = rest.replace(b" ", b"").replace(b'"', b"")
    if b"charset=" in charset and b"charset=utf-8" not in charset:
        return False
    return name == b"application/json" or (name.startswith(b"application/") and name.endswith(b"+json"))


def _first_name(text: bytes) -> str:
    return text.split(b"&")[0].split(b"=")[0].decode("ascii", "replace")[:100]
