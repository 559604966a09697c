"""What is asked for: the specification of a task, written once and never changed."""

from collections.abc import Sequence
from typing import Literal, NamedTuple, overload

OnLoss = Literal["retry", "count", "fail"]
ON_LOSS: tuple[OnLoss, ...] = ("retry", "count", "fail")

Trigger = Literal["all_succeeded", "all_done", "any_succeeded", "any_failed"]
TRIGGERS: tuple[Trigger, ...] = ("all_succeeded", "all_done", "any_succeeded", "any_failed")

FailurePolicy = Literal["fail", "continue", "cancel_job"]
FAILURE_POLICIES: tuple[FailurePolicy, ...] = ("fail", "continue", "cancel_job")


class Body(NamedTuple):
    """Bytes with the name of their encoding. `json` is UTF-8 JSON text; other names are opaque to a store."""

    data: bytes
    encoding: str = "json"


class Terms(NamedTuple):
    """What a task has in common with many others: who asked for it, its lane, and how it is to be treated.

    Tasks that are submitted together share one object, so that a store works out once what that means. Times are
    microseconds; `None` means "not said". Relative times (`ttl_us`, `execution_limit_us`) are turned into instants by
    the store's clock.
    """

    organization: str
    kind: str
    queue: str
    priority: int
    capabilities: tuple[str, ...]
    """Sorted, without repeats."""
    encoding: str
    """That of the payload."""
    principal: str
    initiator: str
    ttl_us: int | None
    execution_limit_us: int
    timeout_us: int | None
    lease_us: int
    max_attempts: int
    max_losses: int
    on_loss: OnLoss
    trigger: Trigger
    if_failed: FailurePolicy
    """What its failure means for its job: resolved from the job's policy and its own edges."""
    retry: str | None
    """The retry policy as JSON; `None` for the default of `Retry`."""


class Rare(NamedTuple):
    """What few tasks have, and then for themselves. Times are microseconds; `None` means "not said"."""

    delay_us: int | None = None
    """Turned into an instant by the store's clock."""
    run_at_us: int | None = None
    """Microseconds since 1970 UTC; exclusive with `delay_us`."""
    idempotency_key: str | None = None
    request_hash: str | None = None
    job: str | None = None
    """The id of its job; `None` for a task submitted alone."""
    name: str | None = None
    """Its name within the job."""
    waits: int = 0
    """How many parents it waits for."""
    options: str | None = None
    """JSON of what is rare: labels, metadata, scope, trace, bindings, redact, gates, unique keys."""


NOTHING_RARE = Rare()


class Task(NamedTuple):
    """One durable unit of work as it was submitted."""

    id: str
    payload: str
    """The body's text: JSON itself, or base64 of any other encoding."""
    terms: Terms
    rare: Rare = NOTHING_RARE


class Alike(Sequence[Task]):
    """Tasks that differ in id and payload only, in columns: an object for each would take longer than to write it.

    They have nothing rare. Payloads are JSON in UTF-8.
    """

    __slots__ = ("ids", "payloads", "terms")

    def __init__(self, ids: Sequence[str], payloads: Sequence[bytes], terms: Terms) -> None:
        self.ids = ids
        self.payloads = payloads
        self.terms = terms

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Task: ...
    @overload
    def __getitem__(self, place: slice) -> "Alike": ...
    def __getitem__(self, place: int | slice) -> "Task | Alike":
        if isinstance(place, slice):
            return Alike(self.ids[place], self.payloads[place], self.terms)
        return Task(self.ids[place], self.payloads[place].decode(), self.terms)


class Edge(NamedTuple):
    """`child` waits for `parent` (ids of tasks). `policy` says what the parent's failure means for the child."""

    parent: str
    child: str
    policy: Literal["fail", "continue"]


class Job(NamedTuple):
    """A DAG of tasks submitted together."""

    id: str
    organization: str
    name: str
    policy: FailurePolicy
    principal: str
    initiator: str
    metadata: str | None
    idempotency_key: str | None
    request_hash: str | None
    tasks: tuple[Task, ...]
    edges: tuple[Edge, ...]
