"""What clients ask for, before it is checked: the same whether it comes from Python, a file, the CLI or HTTP.

Durations are seconds, `None` means "not said": then the kind's default applies, then the system's.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple, overload

import msgspec

from perdure.domain.breaker import Breaker
from perdure.domain.limit import Limit
from perdure.domain.policy import DEFAULT_ORGANIZATION
from perdure.domain.retry import Retry
from perdure.domain.task import FailurePolicy, OnLoss, Trigger
from perdure.domain.unique import Unique


class Principal(NamedTuple):
    """Who acts, in which organization, for whom in the beginning (`initiator`, the same unless acting for somebody)."""

    name: str
    organization: str = DEFAULT_ORGANIZATION
    initiator: str | None = None


class TaskRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """One task to be. `payload` is any value that msgspec encodes, or a `msgspec.Raw` of JSON. None, where the kind is
    known to take fields, is an object without fields.
    """

    kind: str
    payload: Any = None
    queue: str | None = None
    priority: int | None = None
    delay: float | None = None
    run_at: datetime | None = None
    max_attempts: int | None = None
    retry: Retry | None = None
    timeout: float | None = None
    ttl: float | None = None
    execution_limit: float | None = None
    lease: float | None = None
    max_losses: int | None = None
    on_loss: OnLoss | None = None
    capabilities: list[str] | None = None
    labels: dict[str, str] | None = None
    metadata: Any = None
    trace: str | None = None
    """A W3C traceparent; an invalid one is dropped."""
    idempotency_key: str | None = None
    unique: Unique | None = None
    """That it is one of several of which one is enough; `None`: as the kind says."""
    unique_key: str | None = None
    """What stands for the fields by which it is unique, where the payload cannot be read."""


class AlikeRequests(Sequence[TaskRequest]):
    """Requests that name one kind and say nothing but their payloads, in a column."""

    __slots__ = ("kind", "payloads")

    def __init__(self, kind: str, payloads: Sequence[Any]) -> None:
        self.kind = kind
        self.payloads = payloads

    def __len__(self) -> int:
        return len(self.payloads)

    @overload
    def __getitem__(self, place: int) -> TaskRequest: ...
    @overload
    def __getitem__(self, place: slice) -> "AlikeRequests": ...
    def __getitem__(self, place: int | slice) -> "TaskRequest | AlikeRequests":
        if isinstance(place, slice):
            return AlikeRequests(self.kind, self.payloads[place])
        return TaskRequest(kind=self.kind, payload=self.payloads[place])


class Dependency(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A parent by name. `on_failure` is what its failure means here; `None` takes the job's policy."""

    name: str
    on_failure: FailurePolicy | None = None


class JobTaskRequest(TaskRequest, kw_only=True, forbid_unknown_fields=True):
    """A task of a job. `bindings` maps a payload field to the parent whose result fills it, or to a list of parents."""

    name: str
    depends_on: list[str | Dependency] = []
    trigger: Trigger = "all_succeeded"
    bindings: dict[str, str | list[str]] = {}


class NewTask(JobTaskRequest, kw_only=True, forbid_unknown_fields=True):
    """A task that a running task adds to its own job. `before` names tasks of the job that shall wait for it too: they
    have to depend on the task that adds it, so that none of them can have been let go.
    """

    before: list[str] = []


class JobRequest(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """A DAG of tasks to be submitted together."""

    name: str
    tasks: list[JobTaskRequest]
    on_failure: FailurePolicy = "fail"
    metadata: Any = None
    idempotency_key: str | None = None


class KindDefinition(msgspec.Struct, kw_only=True):
    """A kind as its workers declare it: defaults for its tasks, and the JSON Schema of its payload."""

    kind: str
    schema: dict[str, Any] | None = None
    queue: str | None = None
    priority: int | None = None
    retry: Retry | None = None
    timeout: float | None = None
    ttl: float | None = None
    execution_limit: float | None = None
    lease: float | None = None
    max_losses: int | None = None
    on_loss: OnLoss | None = None
    capabilities: list[str] = []
    retention: float | dict[str, float] | None = None
    """How long its tasks are kept once they have ended: seconds for all ends, or by end state. `None`: as the system's
    settings say. A task of a job stays as long as its job.
    """
    result_retention: float | None = None
    """How long their results are kept, where that is shorter."""
    limits: list[Limit] = []
    """How many of its tasks may run."""
    fair_by: list[str] = []
    """Fields of the payload whose values take turns, so that a flood of one delays no other."""
    paused: bool = False
    """Nothing of the kind is claimed. An operator says so; what workers declare leaves it as it is."""
    breaker: Breaker | None = None
    """When its tasks are left alone because too many of them fail."""
    unique: Unique | None = None
    """That one of several is enough, and which those are."""
    redact: bool = False
    """Remove the payload once the task has ended and cannot be redriven."""
