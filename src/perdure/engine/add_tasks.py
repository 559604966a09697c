"""Add tasks to the job of a task that runs: only by its attempt, and only once, however often it is asked for."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from perdure.domain import limits
from perdure.domain.attempt import Hold
from perdure.domain.job import check_added, meaning_of_failure, topological
from perdure.domain.task import FailurePolicy, Task
from perdure.engine import encoding
from perdure.engine.build_task import TaskBuilder
from perdure.engine.kinds import Kinds
from perdure.engine.quantities import check_count
from perdure.engine.requests import NewTask, Principal
from perdure.engine.submit import Submit
from perdure.engine.submit_job import build_job_task, check_task_names, dependencies_of, policy_of_edge
from perdure.errors import Invalid, PerdureError
from perdure.store.job_ledger import Grower, Grown, Growth, Link
from perdure.store.ledger import Ledger

_NOT_HASHED = frozenset({"payload", "trace"})


class AddTasks:
    """Adds tasks to jobs for their running attempts."""

    def __init__(self, ledger: Ledger, kinds: Kinds, submit: Submit) -> None:
        self._ledger = ledger
        self._kinds = kinds
        self._submit = submit

    async def __call__(self, hold: Hold, requests: Sequence[NewTask], ran_us: int = 0) -> Grown:
        """The ids of the tasks by name. Raises `LeaseLost`, and a `Refused` that names the task and the field."""
        if not requests:
            raise Invalid("name at least one task to be added", field="tasks")
        if len(requests) > limits.SUBMIT_MAX_TASKS:
            raise Invalid(
                f"one call adds {limits.SUBMIT_MAX_TASKS:,} tasks at most, not {len(requests):,}: split it",
                field="tasks",
            )
        check_count(ran_us, "ran_us", 0, limits.EXECUTION_LIMIT_MAX_US)
        grower = await self._ledger.grower(hold)
        by = Principal(grower.principal, hold.organization, grower.initiator)
        known = await self._kinds.of(hold.organization)
        growth = build_growth(hold, requests, grower, self._submit.builder(by, known), ran_us)
        (answer,) = await self._ledger.grow([growth])
        if isinstance(answer, PerdureError):
            raise answer
        return answer


def build_growth(hold: Hold, requests: Sequence[NewTask], grower: Grower, builder: TaskBuilder, ran_us: int) -> Growth:
    """The growth that is asked for. Raises a `Refused` that names the task and the field."""
    check_task_names(requests)
    by_name = {task.name: task for task in requests}
    above = {name: dependencies_of(task, grower.policy) for name, task in by_name.items()}
    parents = {name: list(policies) for name, policies in above.items()}
    before = {name: list(task.before) for name, task in by_name.items() if task.before}
    check_added(parents, before)
    if grower.policy != "cancel_job":
        _check_settled(above)
    below: dict[str, list[FailurePolicy]] = {name: [grower.policy] * len(before.get(name, ())) for name in by_name}
    for policies in above.values():
        for parent, policy in policies.items():
            if parent in below:
                below[parent].append(policy)
    order = topological({name: [each for each in names if each in by_name] for name, names in parents.items()})
    tasks = tuple(
        _build(by_name[name], above[name], meaning_of_failure(grower.policy, below[name]), grower, builder)
        for name in order
    )
    links = [
        Link(parent, child, policy_of_edge(policy))
        for child, policies in above.items()
        for parent, policy in policies.items()
    ]
    onward = [Link(name, each, policy_of_edge(grower.policy)) for name, names in before.items() for each in names]
    return Growth(hold, tasks, (*links, *onward), ran_us)


def _build(
    request: NewTask,
    above: dict[str, FailurePolicy],
    if_failed: FailurePolicy,
    grower: Grower,
    builder: TaskBuilder,
) -> Task:
    task = build_job_task(request, above, if_failed, grower.job_id, builder)
    payload = task.payload if request.bindings else encoding.as_said(request.payload, task.payload)
    return task._replace(rare=task.rare._replace(request_hash=_request_hash(request, payload)))


def _check_settled(above: Mapping[str, Mapping[str, FailurePolicy]]) -> None:
    """What the failure of a task means for its job is settled when the task is made."""
    for name, policies in above.items():
        for parent, policy in policies.items():
            if policy == "cancel_job" and parent not in above:
                raise Invalid(
                    f"task {name!r} cannot let the failure of {parent!r} cancel the job: the job has {parent!r}"
                    " already, and what its failure means was said then",
                    field=f"tasks.{name}.depends_on",
                    names=[parent],
                )


def _request_hash(request: NewTask, payload: str) -> str:
    """Names what was asked for: equal requests have equal hashes, whatever differs from one sending to the next."""
    stated = {name: getattr(request, name) for name in request.__struct_fields__ if name not in _NOT_HASHED}
    said = {name: value for name, value in stated.items() if value not in (None, [], {})}
    return sha256(encoding.encode_sorted([said, encoding.decode(payload)])).hexdigest()
