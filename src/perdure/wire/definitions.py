"""Bodies of the documents that say how queues, kinds and organizations are treated."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from perdure.domain.limit import Limit
from perdure.domain.retry import Retry
from perdure.domain.task import OnLoss
from perdure.domain.unique import Unique
from perdure.wire import shapes

Depth = Annotated[int, Meta(extra_json_schema={"minimum": 0, "maximum": 2**53})]


class QueueDocument(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """A queue's policy, whole. `depth`: how many tasks may wait in it; null for any number."""

    paused: bool = False
    dead_letters: bool = True
    depth: Depth | None = None


class OrganizationDocument(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """An organization's policy, whole. Paused, nothing of it is claimed; `depth` is for all of its queues together."""

    paused: bool = False
    depth: Depth | None = None


class KindDocument(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A kind, whole, as its workers declare it: a worker that starts with another one replaces it."""

    kind: shapes.KindName | None = None
    """As in the path; may be left out."""
    schema: dict[str, Any] | None = None
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
    limits: list[Limit] = []
    unique: Unique | None = None
    redact: bool = False
