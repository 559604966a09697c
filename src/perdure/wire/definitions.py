"""Bodies of the documents that say how queues, kinds and organizations are treated."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from perdure.domain import limits
from perdure.domain.breaker import Breaker
from perdure.domain.limit import Limit
from perdure.domain.retry import Retry
from perdure.domain.task import OnLoss
from perdure.domain.unique import Unique
from perdure.wire import shapes

Depth = Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": 2**53})]
Slots = Annotated[int, Meta(extra_json_schema={"minimum": 1, "maximum": limits.LIMIT_MAX})]
Per = Annotated[
    float,
    Meta(
        extra_json_schema={
            "minimum": limits.seconds(limits.LIMIT_PER_MIN_US),
            "maximum": limits.seconds(limits.LIMIT_PER_MAX_US),
        }
    ),
]
Limits = Annotated[
    list[Limit],
    Meta(
        description="No two of one sort (concurrency, rate, ordered) by the same fields.",
        extra_json_schema={"maxItems": limits.LIMITS_MAX},
    ),
]
"""The limits of a kind."""
JsonSchema = Annotated[dict[str, Any], Meta(description="A JSON Schema; nowhere in it is the character NUL.")]
"""The schema of a kind's payload."""
Weight = Annotated[float, Meta(extra_json_schema={"minimum": limits.WEIGHT_MIN, "maximum": limits.WEIGHT_MAX})]


class QueueDocument(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A queue's policy, whole. `depth`: how many tasks may wait in it; `concurrency`: how many may be held at once;
    `rate`: how many may start in any stretch of `per` seconds (1 if null). Null for any number.
    """

    paused: bool = False
    dead_letters: bool = True
    depth: Depth | None = None
    concurrency: Slots | None = None
    rate: Slots | None = None
    per: Per | None = None


class OrganizationDocument(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """An organization's policy, whole. Paused, nothing of it is claimed; `depth`, `concurrency` and `rate` are for all
    of its queues together. `weight`: how large its share is beside those of others whose tasks wait too (1 if null).
    """

    paused: bool = False
    depth: Depth | None = None
    concurrency: Slots | None = None
    rate: Slots | None = None
    per: Per | None = None
    weight: Weight | None = None


class QueueLimits(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits of a queue to change: null lifts one, what is not said stays."""

    depth: Depth | msgspec.UnsetType | None = msgspec.UNSET
    concurrency: Slots | msgspec.UnsetType | None = msgspec.UNSET
    rate: Slots | msgspec.UnsetType | None = msgspec.UNSET
    per: Per | msgspec.UnsetType | None = msgspec.UNSET


class OrganizationLimits(QueueLimits, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Limits of the organization to change, and its weight: null lifts one, what is not said stays."""

    weight: Weight | msgspec.UnsetType | None = msgspec.UNSET


class KindDocument(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A kind, whole, as its workers declare it: a worker that starts with another one replaces it."""

    kind: shapes.KindName | None = None
    """As in the path; may be left out."""
    schema: JsonSchema | None = None
    queue: shapes.QueueName | None = None
    priority: shapes.Priority | None = None
    retry: Retry | None = None
    timeout: shapes.Timeout | None = None
    ttl: shapes.Ttl | None = None
    execution_limit: shapes.ExecutionLimit | None = None
    lease: shapes.LeaseSeconds | None = None
    max_losses: shapes.Losses | None = None
    on_loss: OnLoss | None = None
    capabilities: shapes.Capabilities = []
    retention: shapes.Retention | shapes.Retentions | None = None
    result_retention: shapes.Retention | None = None
    limits: Limits = []
    fair_by: shapes.Fields = []
    paused: bool = False
    breaker: Breaker | None = None
    unique: Unique | None = None
    redact: bool = False
