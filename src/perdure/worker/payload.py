"""The contract between a payload and a handler's parameters: typed conversion both ways, and its JSON Schema.

The payload is a JSON object of the handler's parameters. A handler whose only parameter is positional-only
(`def place(order: Order, /)`) takes the whole payload, whatever JSON it is.
"""

import functools
import inspect
import re
import sys
import typing
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import msgspec

from perdure.domain.limits import PAYLOAD_MAX_BYTES
from perdure.domain.task import Body
from perdure.engine import encoding
from perdure.errors import Invalid, Misuse
from perdure.worker.read_as import say_what_is_read

_PLACE = re.compile(r"at `\$\.?([^`]*)`")
_NAMED = re.compile(r"field `([^`]*)`")
_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What a decoder raises."""
_SAFE_DEFAULTS = (bool, int, float, str, bytes, type(None))


class BadPayload(Exception):
    """A payload does not fit the handler's types. `field` is the place: `order.items[0].count`."""

    def __init__(self, message: str, field: str) -> None:
        super().__init__(message)
        self.field = field


class PayloadCodec:
    """Converts payloads of one handler. Compiled once, at registration."""

    def __init__(self, kind: str, parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]) -> None:
        self._kind = kind
        self.names = tuple(each.name for each in parameters if each.kind is not inspect.Parameter.VAR_KEYWORD)
        self._takes_more = len(self.names) < len(parameters)
        self.whole = _whole_parameter(kind, parameters)
        self._type: Any = self._compile(parameters, hints)
        try:
            self._decoder = msgspec.json.Decoder(self._type, dec_hook=decode_foreign)
        except TypeError as error:
            raise Misuse(f"the parameters of {kind!r} cannot be read from JSON: {error}", kind=kind) from error

    def _compile(self, parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any]) -> Any:
        if self.whole is not None:
            return hints.get(self.whole, Any)
        fields: list[tuple[str, Any, Any] | tuple[str, Any]] = []
        for each in parameters:
            if each.name not in self.names:
                continue
            hint = hints.get(each.name, Any)
            if each.default is inspect.Parameter.empty:
                fields.append((each.name, hint))
            else:
                fields.append((each.name, hint, _default(each.default)))
        try:
            return msgspec.defstruct(
                _struct_name(self._kind),
                fields,
                kw_only=True,
                forbid_unknown_fields=not self._takes_more,
            )
        except TypeError as error:
            raise Misuse(f"the parameters of {self._kind!r} cannot be described: {error}", kind=self._kind) from error

    @property
    def is_open(self) -> bool:
        """A payload may have other fields than `names`."""
        return self._takes_more or self.whole is not None

    def convert(self, body: Body) -> dict[str, Any]:
        """The handler's arguments by name. Raises `BadPayload`."""
        if body.encoding != "json":
            raise BadPayload(f"this worker cannot read a payload encoded as {body.encoding!r}", "payload")
        return self.decode(body.data)

    def decode(self, data: bytes) -> dict[str, Any]:
        """The handler's arguments by name from JSON. Raises `BadPayload`."""
        value = self._decoded(data)
        if self.whole is not None:
            return {self.whole: value}
        arguments = msgspec.structs.asdict(value)
        if self._takes_more:
            given = msgspec.json.decode(data)
            arguments.update({name: item for name, item in given.items() if name not in arguments})
        return arguments

    def _decoded(self, data: bytes) -> Any:
        try:
            return self._decoder.decode(data)
        except _UNREADABLE as error:
            raise bad_payload(error) from None

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any], bound: Collection[str] = ()) -> encoding.Checked:
        """The payload of a call `handler(*args, **kwargs)`, checked as the worker will check it.

        `bound` names parameters that a parent's result will fill. Raises `Invalid` with the field at fault,
        and `TooLarge`.
        """
        # Every call comes here: what can be told at once is not asked for in methods.
        value: Any = kwargs
        if self.whole is not None:
            value = self._whole_of(args, kwargs)
        elif args:
            value = self._fields_of(args, kwargs)
        try:
            data = encoding.encode(value, "payload", PAYLOAD_MAX_BYTES)
        except Invalid as error:
            place = str(error.fields.get("field", "payload")).removeprefix("payload.")
            raise Invalid(f"the call of {self._kind!r} cannot be sent: {error.message}", field=place) from error
        if bound:
            return encoding.Checked(data)
        try:
            self._decoder.decode(data)
        except _UNREADABLE:
            self.check(data)  # It says what is wrong.
        return encoding.Checked(data, self.schema)

    def check(self, data: bytes) -> None:
        """Raise `Invalid` unless the handler's types take this JSON."""
        try:
            self._decoded(data)
        except BadPayload as error:
            raise Invalid(f"the payload does not fit {self._kind!r}: {error}", field=error.field) from None

    def _whole_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if len(args) == 1 and not kwargs:
            return args[0]
        raise Invalid(f"{self._kind!r} takes its payload as one positional argument", field="payload")

    def _fields_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        if len(args) > len(self.names):
            raise Invalid(f"{self._kind!r} takes at most {len(self.names)} arguments, not {len(args)}", field="payload")
        given = dict(zip(self.names, args, strict=False))
        for name, item in kwargs.items():
            if name in given:
                raise Invalid(f"{self._kind!r} got {name!r} twice", field=name)
            given[name] = item
        return given

    @functools.cached_property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema (2020-12) of the payload; `None` when its types cannot be described."""
        nested: dict[str, Any] = {}

        def describe(foreign: type) -> dict[str, Any]:
            return _describe_foreign(foreign, nested)

        try:
            (schema,), components = msgspec.json.schema_components(
                [self._type], schema_hook=describe, ref_template="#/$defs/{name}"
            )
        except (TypeError, NotImplementedError, RuntimeError):
            return None
        say_what_is_read(self._type, schema, components)
        name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
        if self.whole is None and name in components:
            schema = components.pop(name)
        definitions = {**components, **nested}
        return {**schema, "$defs": definitions} if definitions else dict(schema)


def bad_payload(error: BaseException) -> BadPayload:
    """What msgspec found wrong, with the field's name."""
    message = str(error)
    place = _PLACE.search(message)
    named = _NAMED.search(message)
    path = place.group(1) if place else ""
    if named and named.group(1) != path:
        path = f"{path}.{named.group(1)}" if path else named.group(1)
    return BadPayload(message, path or "payload")


def pydantic_model(candidate: Any) -> Any:
    """The type itself when it is a Pydantic model, else `None`. Pydantic is never imported for it."""
    pydantic = sys.modules.get("pydantic")
    if pydantic is not None and isinstance(candidate, type) and issubclass(candidate, pydantic.BaseModel):
        return candidate
    return None


def decode_foreign(wanted: Any, value: Any) -> Any:
    """What msgspec calls for a type that it does not know."""
    model = pydantic_model(wanted)
    if model is not None:
        return model.model_validate(value)
    if isinstance(wanted, type) and isinstance(value, wanted):
        return value
    raise TypeError(f"a value of type {getattr(wanted, '__name__', wanted)} cannot be read from JSON")


def _describe_foreign(foreign: type, nested: dict[str, Any]) -> dict[str, Any]:
    model = pydantic_model(foreign)
    if model is None:
        raise NotImplementedError
    schema: dict[str, Any] = model.model_json_schema(ref_template="#/$defs/{model}")
    nested.update(schema.pop("$defs", {}))
    return schema


def _whole_parameter(kind: str, parameters: Sequence[inspect.Parameter]) -> str | None:
    positional = [each for each in parameters if each.kind is inspect.Parameter.POSITIONAL_ONLY]
    if not positional:
        return None
    if len(parameters) > 1:
        raise Misuse(
            f"the handler of {kind!r} has a positional-only parameter, which takes the whole payload, beside others: "
            "make all of them keyword parameters, or leave only that one",
            kind=kind,
        )
    return positional[0].name


def _struct_name(kind: str) -> str:
    return "".join(part.capitalize() for part in re.split(r"[^0-9A-Za-z]+", kind) if part) or "Payload"


def _default(value: Any) -> Any:
    """A default as msgspec takes it: the object itself, as Python's own defaults are."""
    if type(value) in _SAFE_DEFAULTS:
        return value
    return msgspec.field(default_factory=_constant(value))


def _constant(value: Any) -> Callable[[], Any]:
    return lambda: value


def hints_of(kind: str, function: Callable[..., Any]) -> dict[str, Any]:
    """The resolved annotations of a function. Raises `Misuse` naming what cannot be resolved."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError as error:
        raise Misuse(
            f"an annotation of the handler of {kind!r} cannot be resolved: {error}. Import the name at module level, "
            "not under TYPE_CHECKING or inside a function",
            kind=kind,
        ) from error
