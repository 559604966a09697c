"""What is asked for: the specification of a task, written once and never changed."""

from typing import Literal, NamedTuple

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


class Task(NamedTuple):
    """One durable unit of work as it was submitted. Times are microseconds; `None` means "not said".

    Relative times (`delay_us`, `ttl_us`, `execution_limit_us`) are turned into instants by the store's clock.
    The order of the fields is the order in which stores receive them.
    """

    id: str
    organization: str
    kind: str
    queue: str
    priority: int
    capabilities: tuple[str, ...]
    """Sorted, without repeats."""
    payload: str
    """The body's text: JSON itself, or base64 of any other encoding."""
    encoding: str
    principal: str
    initiator: str
    delay_us: int | None
    run_at_us: int | None
    """Microseconds since 1970 UTC; exclusive with `delay_us`."""
    ttl_us: int | None
    execution_limit_us: int
    timeout_us: int | None
    lease_us: int
    max_attempts: int
    max_losses: int
    on_loss: OnLoss
    idempotency_key: str | None
    request_hash: str | None
    job: str | None
    """The id of its job; `None` for a task submitted alone."""
    name: str | None
    """Its name within the job."""
    trigger: Trigger
    if_failed: FailurePolicy
    """What its failure means for its job: resolved from the job's policy and its own edges."""
    waits: int
    """How many parents it waits for."""
    retry: str | None
    """The retry policy as JSON; `None` for the default of `Retry`."""
    options: str | None
    """JSON of what is rare: labels, metadata, scope, trace, bindings, redact, gate and unique keys."""


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
