"""Submit a job: check its DAG, build its tasks in an order in which parents come first, store all in one write."""

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, Literal

from perdure.ambient import Ids
from perdure.domain import limits
from perdure.domain.job import check_graph, check_names_differ, meaning_of_failure, topological
from perdure.domain.task import FAILURE_POLICIES, TRIGGERS, Edge, FailurePolicy, Job, Task
from perdure.engine import encoding
from perdure.engine.build_task import Place, TaskBuilder, check_metadata
from perdure.engine.kinds import Kinds
from perdure.engine.names import check_key, check_title
from perdure.engine.quantities import check_choice
from perdure.engine.requests import Dependency, JobRequest, JobTaskRequest, Principal
from perdure.engine.submit import Submit
from perdure.errors import Invalid, PerdureError, Refused
from perdure.store.ledger import JobSubmitted, Ledger


class SubmitJob:
    """Submits DAGs of tasks."""

    def __init__(self, ledger: Ledger, kinds: Kinds, ids: Ids, submit: Submit) -> None:
        self._ledger = ledger
        self._kinds = kinds
        self._ids = ids
        self._submit = submit

    async def __call__(self, request: JobRequest, by: Principal) -> JobSubmitted:
        """The job with the ids of its tasks. Raises a `Refused` that names the task and the field."""
        known = await self._kinds.of(by.organization)
        job = build_job(request, by, self._ids.new(), self._submit.builder(by, known))
        (answer,) = await self._ledger.submit_jobs([job])
        if isinstance(answer, PerdureError):
            raise answer
        return answer


def build_job(request: JobRequest, by: Principal, job_id: str, builder: TaskBuilder) -> Job:
    """The job that a request asks for. Raises a `Refused` that names the task and the field."""
    name = check_title(request.name, "name")
    policy = check_choice(request.on_failure, "on_failure", FAILURE_POLICIES)
    key = None if request.idempotency_key is None else check_key(request.idempotency_key)
    metadata = None if request.metadata is None else _metadata_text(request.metadata)
    check_task_names(request.tasks)
    above = {task.name: dependencies_of(task, policy) for task in request.tasks}
    parents = {task: list(policies) for task, policies in above.items()}
    check_graph(parents)
    below: dict[str, list[FailurePolicy]] = {}
    for policies in above.values():
        for parent, edge_policy in policies.items():
            below.setdefault(parent, []).append(edge_policy)
    by_name = {task.name: task for task in request.tasks}
    tasks: dict[str, Task] = {}
    for task_name in topological(parents):
        if_failed = meaning_of_failure(policy, below.get(task_name, ()))
        tasks[task_name] = build_job_task(by_name[task_name], above[task_name], if_failed, job_id, builder)
    return Job(
        id=job_id,
        organization=by.organization,
        name=name,
        policy=policy,
        principal=by.name,
        initiator=by.initiator or by.name,
        metadata=metadata,
        idempotency_key=key,
        request_hash=None if key is None else _request_hash(request),
        tasks=tuple(tasks.values()),
        edges=tuple(
            Edge(tasks[parent].id, tasks[child].id, policy_of_edge(edge_policy))
            for child, policies in above.items()
            for parent, edge_policy in policies.items()
        ),
    )


def policy_of_edge(policy: FailurePolicy) -> Literal["fail", "continue"]:
    """What a parent's failure means for the child: that the job stops is told by the parent alone."""
    return "continue" if policy == "continue" else "fail"


def check_task_names(tasks: Sequence[JobTaskRequest]) -> None:
    """Refuse names that nobody can read, and two of the same."""
    for task in tasks:
        check_title(task.name, "tasks.name")
    check_names_differ(task.name for task in tasks)


def dependencies_of(task: JobTaskRequest, policy: FailurePolicy) -> dict[str, FailurePolicy]:
    """The parents of a task, each with what its failure means here."""
    above: dict[str, FailurePolicy] = {}
    for each in task.depends_on:
        name = each.name if isinstance(each, Dependency) else each
        said = each.on_failure if isinstance(each, Dependency) else None
        if name in above:
            raise Invalid(
                f"task {task.name!r} names {name!r} twice in depends_on", field=_field(task, "depends_on"), names=[name]
            )
        above[name] = policy if said is None else check_choice(said, _field(task, "depends_on"), FAILURE_POLICIES)
    return above


def build_job_task(
    task: JobTaskRequest,
    above: dict[str, FailurePolicy],
    if_failed: FailurePolicy,
    job_id: str,
    builder: TaskBuilder,
) -> Task:
    """One task of a job that depends on those `above`. Raises a `Refused` that names the task and the field."""
    try:
        if task.idempotency_key is not None:
            raise Invalid("a job has one idempotency key, its tasks have none", field="idempotency_key")
        trigger = check_choice(task.trigger, "trigger", TRIGGERS)
        _check_bindings(task, above)
        place = Place(job_id, task.name, trigger, if_failed, len(above), task.bindings)
        return builder.build_in_job(task, place)
    except Refused as refusal:
        raise _of_task(refusal, task) from None


def _check_bindings(task: JobTaskRequest, above: dict[str, FailurePolicy]) -> None:
    if len(task.bindings) > limits.BINDINGS_MAX:
        raise Invalid(f"a task has {limits.BINDINGS_MAX} bindings at most", field="bindings")
    for field, bound in task.bindings.items():
        check_title(field, "bindings")
        for parent in [bound] if isinstance(bound, str) else bound:
            if parent not in above:
                raise Invalid(
                    f"field {field!r} is bound to the result of {parent!r}, which is not in depends_on",
                    field=f"bindings.{field}",
                )


def _of_task(refusal: Refused, task: JobTaskRequest) -> Refused:
    """The same refusal with the task's name in message and field."""
    fields = dict(refusal.fields)
    fields["field"] = _field(task, fields.get("field"))
    return type(refusal)(f"task {task.name!r}: {refusal.message}", task=task.name, **fields)


def _field(task: JobTaskRequest, field: Any) -> str:
    return f"tasks.{task.name}.{field}" if field else f"tasks.{task.name}"


def _metadata_text(metadata: Any) -> str:
    return encoding.encode_sorted(check_metadata(metadata)).decode()


def _request_hash(request: JobRequest) -> str:
    said = encoding.decode(encoding.encode_sorted(request))
    said.pop("idempotency_key", None)
    for task in said["tasks"]:
        task.pop("trace", None)
    return sha256(encoding.encode_sorted(said)).hexdigest()
