"""Bodies about queues, workers, dead letters, kinds and the system itself."""

from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from perdure.domain import limits
from perdure.domain.breaker import Breaker, BreakerEvent, BreakerState
from perdure.domain.limit import Limit
from perdure.domain.states import TaskState
from perdure.domain.unique import Unique
from perdure.engine.requests import KindDefinition
from perdure.wire import shapes
from perdure.wire.definitions import JsonSchema, Limits
from perdure.wire.shapes import Json
from perdure.wire.tasks import Ids, SubmitAnswered

OpenFor = Annotated[
    float,
    Meta(
        extra_json_schema={
            "minimum": limits.seconds(limits.BREAKER_OPEN_MIN_US),
            "maximum": limits.seconds(limits.BREAKER_OPEN_MAX_US),
        }
    ),
]


class Queue(msgspec.Struct, kw_only=True, frozen=True):
    """A queue. `missing_kinds` wait here and no active worker has them."""

    name: str
    paused: bool
    dead_letters: bool
    depth: int | None
    concurrency: int | None = None
    rate: int | None = None
    per: float | None = None
    counts: dict[str, int]
    oldest_queued_at: datetime | None = None
    missing_kinds: list[str] = []


class Queues(msgspec.Struct, kw_only=True, frozen=True):
    """Queues that hold something or have a policy, by name."""

    queues: list[Queue]


class QueueChanged(msgspec.Struct, kw_only=True, frozen=True):
    """The queue whose policy was changed; the next claim goes by it."""

    name: str


class ConfigureQueue(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A queue's policy. What is not said stays. `unlimited` lifts the depth."""

    dead_letters: bool | None = None
    depth: Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": 2**53})] | None = None
    unlimited: bool = False


class Purged(msgspec.Struct, kw_only=True, frozen=True):
    """How many waiting tasks were cancelled."""

    purged: int


class Worker(msgspec.Struct, kw_only=True, frozen=True):
    """A worker as it said of itself, with what it holds now. `silent`: seconds since `seen_at`, as the store counts."""

    id: str
    name: str
    host: str
    pid: int
    version: str
    build: str
    kinds: list[str]
    queues: list[str]
    organizations: list[str]
    capabilities: list[str]
    capacity: int
    leases: int
    order: str
    ordered_by: str | None = None
    ordered_at: datetime | None = None
    registered_at: datetime
    seen_at: datetime
    left_at: datetime | None = None
    silent: float | None = None


class Workers(msgspec.Struct, kw_only=True, frozen=True):
    """Workers."""

    workers: list[Worker]


class ActiveQuery(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which workers: those seen within `active` seconds, or all that are remembered."""

    active: Annotated[float, Meta(ge=0, le=31_536_000)] = 120.0
    all: bool = False


class Ordered(msgspec.Struct, kw_only=True, frozen=True):
    """The order that a worker will be told with its next sign of life."""

    id: str
    order: Literal["work", "pause", "drain", "revoke"]


class Requeue(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Run a failed task again. `payload` replaces its own."""

    payload: Json = shapes.NULL


class RequeueMany(Requeue, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Run failed tasks again."""

    ids: Ids


class Redriven(msgspec.Struct, kw_only=True, frozen=True):
    """One answer per id, in order."""

    tasks: list[SubmitAnswered]


class DeadLetterChoice(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Which dead letters."""

    ids: Ids


class DeadLettersMarked(msgspec.Struct, kw_only=True, frozen=True):
    """For each id, in order, whether it was done; not where it is no dead letter."""

    done: list[bool]


class DeclareKind(KindDefinition, kw_only=True, forbid_unknown_fields=True):
    """A kind as its workers have it: defaults for its tasks, and the JSON Schema of its payload."""

    kind: shapes.KindName
    schema: JsonSchema | None = None
    queue: shapes.QueueName | None = None
    priority: shapes.Priority | None = None
    timeout: shapes.Timeout | None = None
    ttl: shapes.Ttl | None = None
    execution_limit: shapes.ExecutionLimit | None = None
    lease: shapes.LeaseSeconds | None = None
    max_losses: shapes.Losses | None = None
    capabilities: shapes.Capabilities = msgspec.field(default_factory=list)
    limits: Limits = msgspec.field(default_factory=list)
    fair_by: shapes.Fields = msgspec.field(default_factory=list)
    retention: shapes.Retention | shapes.Retentions | None = None
    result_retention: shapes.Retention | None = None


class DeclareKinds(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """Kinds as their workers have them."""

    kinds: list[DeclareKind]


class Kind(msgspec.Struct, kw_only=True, frozen=True):
    """A kind as it is known here, with what holds for a task that does not say otherwise. Durations are seconds."""

    name: str
    version: int
    queue: str
    priority: int
    capabilities: list[str]
    ttl: float | None
    execution_limit: float
    timeout: float | None
    lease: float
    max_attempts: int
    max_losses: int
    on_loss: str
    redact: bool
    limits: list[Limit] = []
    fair_by: list[str] = []
    paused: bool = False
    breaker: Breaker | None = None
    unique: Unique | None = None
    schema: dict[str, Any] | None = None


class Kinds(msgspec.Struct, kw_only=True, frozen=True):
    """The kinds that are known, by name."""

    kinds: list[Kind]


class KindBreaker(msgspec.Struct, kw_only=True, frozen=True):
    """The breaker of a kind. `attempts` and `failures` are what it counts now, of its window while it is closed; what
    begins with `last_` tells of its last change, at `since_at`. `until_at`: when it lets probes through, or since when.
    """

    kind: str
    state: BreakerState
    since_at: datetime | None = None
    until_at: datetime | None = None
    attempts: int
    failures: int
    trips: int
    last_event: BreakerEvent | None = None
    last_attempts: int | None = None
    last_failures: int | None = None
    actor: str | None = None


class Breakers(msgspec.Struct, kw_only=True, frozen=True):
    """The breakers of kinds that have one, by kind."""

    breakers: list[KindBreaker]


class TripBreaker(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """For how many seconds the breaker is open; as the kind says, if null."""

    open_for: OpenFor | None = None


class KindShown(msgspec.Struct, kw_only=True, frozen=True):
    """A kind, and how its breaker stands if it has one."""

    kind: Kind
    breaker: KindBreaker | None = None


class KindChanged(msgspec.Struct, kw_only=True, frozen=True):
    """The kind that was changed; the next claim goes by it."""

    name: str


class Count(msgspec.Struct, kw_only=True, frozen=True):
    """How many tasks of one queue and kind are in one state."""

    queue: str
    kind: str
    state: TaskState
    tasks: int


class Counts(msgspec.Struct, kw_only=True, frozen=True):
    """The whole at a glance. `by_state` sums `counts`."""

    counts: list[Count]
    by_state: dict[str, int]
    workers_active: int
    oldest_queued_at: datetime | None
    oldest_active_at: datetime | None
    tasks: int
    attempts: int
    results: int


class Config(msgspec.Struct, kw_only=True, frozen=True):
    """What holds here: the settings in effect, the limits of requests, and the kinds with theirs."""

    version: str
    settings: dict[str, Any]
    limits: dict[str, int | float]
    kinds: list[Kind]


class Health(msgspec.Struct, kw_only=True, frozen=True):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Readiness(msgspec.Struct, kw_only=True, frozen=True):
    """Whether work can be taken. `checks` tells of each condition `ok` or what is wrong, `notices` what whoever runs it
    should know of all the same.
    """

    status: Literal["ready", "not_ready"]
    checks: dict[str, str]
    notices: list[str] = []
