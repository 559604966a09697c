"""The handlers by kind. The app fills it, workers read it."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from perdure.domain.limits import KIND_MAX_CHARS
from perdure.engine.requests import KindDefinition
from perdure.errors import Misuse, NotFound
from perdure.worker.handler import Defaults, Handler, Upcaster


class Registry:
    """Handlers by kind. A kind is registered once."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._routes: dict[str, Handler] = {}

    def add(
        self,
        kind: str,
        function: Callable[..., Any],
        *,
        isolation: str | None = None,
        retry_on: Collection[type[BaseException]] = (),
        give_up_on: Collection[type[BaseException]] = (),
        upcasters: Mapping[str, Upcaster] | None = None,
        **defaults: Any,
    ) -> Handler:
        """Register `function` for `kind`. `defaults` are the fields of `Defaults`: queue, priority, retry, timeout, ...

        `upcasters` maps older kinds to functions that turn their payload into this kind's. Raises `Misuse` for a kind
        that is registered already, and for a function that cannot be a handler.
        """
        if not kind or len(kind) > KIND_MAX_CHARS:
            raise Misuse(f"a kind has 1 to {KIND_MAX_CHARS} characters, not {len(kind)}", kind=kind)
        if not callable(function):
            raise Misuse(f"task {kind!r}: {function!r} is no function: write @app.task({kind!r}) above one", kind=kind)
        handler = Handler(
            kind,
            function,
            isolation=isolation,
            defaults=_defaults(kind, defaults),
            retry_on=retry_on,
            give_up_on=give_up_on,
            upcasters=upcasters,
        )
        names = (kind, *handler.upcasters)
        for name in names:
            if name in self._routes:
                raise Misuse(f"kind {name!r} is registered already, by {_place(self._routes[name])}", kind=name)
        self._routes.update(dict.fromkeys(names, handler))
        self._handlers[kind] = handler
        return handler

    def find(self, kind: str) -> Handler | None:
        """The handler that runs tasks of `kind`, older kinds included."""
        return self._routes.get(kind)

    def get(self, kind: str) -> Handler:
        """The handler of `kind`. Raises `NotFound`."""
        handler = self._routes.get(kind)
        if handler is None:
            raise NotFound(f"no handler is registered for kind {kind!r}", what="kind", id=kind)
        return handler

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds that can be run, older ones included, sorted."""
        return tuple(sorted(self._routes))

    @property
    def queues(self) -> tuple[str, ...]:
        """The default queues that its kinds name, sorted."""
        return tuple(sorted({each.defaults.queue for each in self if each.defaults.queue is not None}))

    @property
    def starts_at_rates(self) -> bool:
        """Whether one of its kinds starts at a rate."""
        return any(limit.rate is not None for each in self for limit in each.defaults.limits)

    def definitions(self) -> list[KindDefinition]:
        """What the system is to know of all kinds."""
        return [definition for handler in self for definition in handler.definitions()]

    def __iter__(self) -> Iterator[Handler]:
        return iter(list(self._handlers.values()))

    def __len__(self) -> int:
        return len(self._handlers)

    def __contains__(self, kind: object) -> bool:
        return kind in self._routes


def _defaults(kind: str, given: Mapping[str, Any]) -> Defaults:
    unknown = sorted(given.keys() - set(Defaults.__struct_fields__))
    if unknown:
        known = ", ".join(sorted(Defaults.__struct_fields__))
        raise Misuse(f"kind {kind!r} is given unknown options {', '.join(unknown)}; known are {known}", kind=kind)
    values = dict(given)
    values["capabilities"] = tuple(sorted(set(values.get("capabilities") or ())))
    return Defaults(**values)


def _place(handler: Handler) -> str:
    function = handler.function
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', repr(function))}"
