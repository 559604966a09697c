"""One registered function: its kind, its contract, its defaults, and how its errors are judged."""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

import msgspec

from perdure.domain.breaker import Breaker
from perdure.domain.limit import Limit
from perdure.domain.limits import PAYLOAD_MAX_BYTES
from perdure.domain.retry import Retry
from perdure.domain.task import ON_LOSS, Body, OnLoss
from perdure.domain.unique import Unique
from perdure.engine import encoding
from perdure.engine.requests import KindDefinition
from perdure.errors import Misuse
from perdure.worker.context import Context, SyncContext
from perdure.worker.payload import BadPayload, PayloadCodec, hints_of
from perdure.worker.result_type import check_result_type
from perdure.worker.results import decode_result, value_type

Isolation = Literal["async", "thread"]
Upcaster = Callable[[dict[str, Any]], dict[str, Any]]
ErrorTypes = tuple[type[BaseException], ...]


class Defaults(msgspec.Struct, frozen=True, kw_only=True):
    """What a kind says about its tasks where the submitter says nothing. Durations are seconds."""

    queue: str | None = None
    priority: int | None = None
    retry: Retry | None = None
    timeout: float | None = None
    ttl: float | None = None
    execution_limit: float | None = None
    lease: float | None = None
    max_losses: int | None = None
    on_loss: OnLoss | None = None
    capabilities: tuple[str, ...] = ()
    retention: float | dict[str, float] | None = None
    result_retention: float | None = None
    limits: tuple[Limit, ...] = ()
    fair_by: tuple[str, ...] = ()
    breaker: Breaker | None = None
    unique: Unique | None = None
    redact: bool = False


class Handler:
    """A function that runs the tasks of one kind, and of the older kinds that its upcasters translate.

    `context_name` is the parameter that receives the `Context`, if any: the one annotated so, or `ctx` without an
    annotation. All other parameters are fields of the payload. A parameter may be named like an option of `submit`;
    the app refuses a submit that could mean either.
    """

    __slots__ = (
        "_codec",
        "bare",
        "context_name",
        "defaults",
        "function",
        "give_up_on",
        "is_async",
        "isolation",
        "kind",
        "result_type",
        "retry_on",
        "upcasters",
    )

    def __init__(
        self,
        kind: str,
        function: Callable[..., Any],
        *,
        isolation: str | None = None,
        defaults: Defaults | None = None,
        retry_on: Collection[type[BaseException]] = (),
        give_up_on: Collection[type[BaseException]] = (),
        upcasters: Mapping[str, Upcaster] | None = None,
    ) -> None:
        self.kind = kind
        self.function = function
        self.is_async = is_coroutine_function(function)
        self.isolation: Isolation = _isolation(kind, self.is_async, isolation)
        self.defaults = defaults or Defaults()
        if self.defaults.on_loss is not None and self.defaults.on_loss not in ON_LOSS:
            raise Misuse(f"on_loss of {kind!r} must be one of {', '.join(ON_LOSS)}", kind=kind)
        if self.defaults.redact:
            raise Misuse(f"{kind!r} asks for redact=True, which this version does not have yet", kind=kind)
        self.retry_on = _error_types(kind, "retry_on", retry_on)
        self.give_up_on = _error_types(kind, "give_up_on", give_up_on)
        self.upcasters: dict[str, Upcaster] = dict(upcasters or {})
        hints = hints_of(kind, _annotated(function))
        self.result_type: Any = value_type(hints.get("return", Any))
        check_result_type(kind, self.result_type)
        parameters = _parameters(kind, function)
        self.context_name = _context_name(kind, parameters, hints, self.is_async)
        data = [each for each in parameters if each.name != self.context_name]
        self._codec = PayloadCodec(kind, data, hints)
        if not self.upcasters:  # An older kind may have fields that this one has not.
            _check_fields(kind, self._codec, self.defaults)
        self.bare = self.context_name is None
        """It takes no context."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names that a payload may have."""
        return self._codec.names

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON Schema of the payload; `None` when its types cannot be described."""
        return self._codec.schema

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any], bound: Collection[str] = ()) -> encoding.Checked:
        """The payload of a call, as JSON. Raises `Invalid` with the field at fault. See `PayloadCodec.bind`."""
        return self._codec.bind(args, kwargs, bound)

    def check_payload(self, payload: Any) -> None:
        """Raise `Invalid` with the field, or `TooLarge`, for a whole payload that the handler does not take."""
        self._codec.check(encoding.encode(payload, "payload", PAYLOAD_MAX_BYTES))

    def convert(self, body: Body, kind: str | None = None, filled: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The handler's arguments by name. `kind` is the task's, which an upcaster may translate; `filled` are
        payload fields that parents' results fill. Raises `BadPayload`.
        """
        if filled or (kind is not None and kind != self.kind):
            body = self._translated(body, kind or self.kind, filled or {})
        return self._codec.convert(body)

    def call(self, arguments: dict[str, Any]) -> Any:
        """Call the function: a coroutine when it is async, else its result."""
        whole = self._codec.whole
        if whole is None:
            return self.function(**arguments)
        return self.function(arguments.pop(whole), **arguments)

    def gives_up_on(self, error: BaseException) -> bool:
        """Whether another attempt is pointless: by `give_up_on`, or because `retry_on` does not name it."""
        if self.give_up_on and isinstance(error, self.give_up_on):
            return True
        return bool(self.retry_on) and not isinstance(error, self.retry_on)

    def definitions(self) -> list[KindDefinition]:
        """What the system is to know of this kind and of the older ones that it runs."""
        defaults = msgspec.structs.asdict(self.defaults) | {"capabilities": list(self.defaults.capabilities)}
        return [
            KindDefinition(kind=self.kind, schema=self.schema, **defaults),
            *(KindDefinition(kind=older, **defaults) for older in self.upcasters),
        ]

    def decode_result(self, body: Body) -> Any:
        """A result as the handler's return type; plain JSON values where the type does not take it."""
        return decode_result(body, self.result_type)

    def _translated(self, body: Body, kind: str, filled: Mapping[str, Any]) -> Body:
        if body.encoding != "json":
            return body
        try:
            fields = msgspec.json.decode(body.data)
            if kind != self.kind:
                fields = self.upcasters[kind](fields)
            if filled:
                fields = {**fields, **filled}
            return Body(msgspec.json.encode(fields))
        except Exception as error:
            raise BadPayload(f"the payload of {kind!r} cannot be translated: {error!r}", "payload") from error


def is_coroutine_function(function: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine; looks through `functools.partial` and callable objects."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


def _annotated(function: Callable[..., Any]) -> Callable[..., Any]:
    """The thing that carries the annotations: the function under a partial, or a callable object's method."""
    while isinstance(function, functools.partial):
        function = function.func
    if inspect.isfunction(function) or inspect.ismethod(function):
        return function
    called: Callable[..., Any] = type(function).__call__
    return called


def _isolation(kind: str, is_async: bool, wanted: str | None) -> Isolation:
    if wanted == "process":
        raise Misuse(
            f"{kind!r} asks for isolation='process', which this version does not have yet: use 'thread', and look at "
            "ctx.cancelled in long loops",
            kind=kind,
        )
    own: Isolation = "async" if is_async else "thread"
    if wanted in (None, own):
        return own
    if wanted in ("async", "thread"):
        what = "an async function runs on the event loop" if is_async else "a plain function runs in a thread"
        raise Misuse(f"{kind!r} asks for isolation={wanted!r}, but {what}", kind=kind)
    raise Misuse(f"isolation of {kind!r} must be 'async' or 'thread', not {wanted!r}", kind=kind)


def _error_types(kind: str, option: str, types: Collection[type[BaseException]]) -> ErrorTypes:
    for each in types:
        if not (isinstance(each, type) and issubclass(each, BaseException)):
            raise Misuse(f"{option} of {kind!r} must list exception types, not {each!r}", kind=kind)
    return tuple(types)


def _parameters(kind: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    parameters = list(inspect.signature(function).parameters.values())
    if any(each.kind is inspect.Parameter.VAR_POSITIONAL for each in parameters):
        raise Misuse(f"the handler of {kind!r} takes *args: a payload has names, use keyword parameters", kind=kind)
    return parameters


def _context_name(
    kind: str, parameters: Sequence[inspect.Parameter], hints: Mapping[str, Any], is_async: bool
) -> str | None:
    found = [each for each in parameters if _is_context(each, hints)]
    if len(found) > 1:
        raise Misuse(f"the handler of {kind!r} takes the context twice", kind=kind)
    if not found:
        return None
    if is_async and hints.get(found[0].name) is SyncContext:
        raise Misuse(f"the handler of {kind!r} is async: annotate its context as perdure.Context", kind=kind)
    if found[0].kind is inspect.Parameter.POSITIONAL_ONLY:
        raise Misuse(f"the context of {kind!r} must be passable by name", kind=kind)
    return found[0].name


def _is_context(parameter: inspect.Parameter, hints: Mapping[str, Any]) -> bool:
    hint = hints.get(parameter.name)
    if hint is None:
        return parameter.name == "ctx"
    return hint in (Context, SyncContext) or Context in getattr(hint, "__args__", ())


def _check_fields(kind: str, codec: PayloadCodec, defaults: Defaults) -> None:
    """Raise `Misuse` where a limit, turns or uniqueness are by a field that no payload has: all tasks would be one."""
    if codec.is_open:
        return
    said = [("limits", limit.by) for limit in defaults.limits]
    said += [("fair_by", defaults.fair_by), ("unique", defaults.unique.by if defaults.unique is not None else ())]
    for option, fields in said:
        for field in fields:
            if field not in codec.names:
                known = f"it takes {', '.join(codec.names)}" if codec.names else "it takes none"
                raise Misuse(
                    f"{option} of {kind!r} is by {field!r}, which its handler does not take: {known}", kind=kind
                )
