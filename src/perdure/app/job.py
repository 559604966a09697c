"""Building a job in code, task by task."""

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, overload

from perdure.app.call import Target, call_of
from perdure.app.handle import Access
from perdure.app.job_handle import JobHandle
from perdure.app.known_kinds import declare_unknown, wonder_at_unknown
from perdure.app.node import Node
from perdure.app.task import Call, R, ResultOf, Task
from perdure.app.tracing import traced
from perdure.domain.retry import Retry
from perdure.domain.task import FailurePolicy, OnLoss, Trigger
from perdure.domain.unique import Unique
from perdure.engine.requests import Dependency, JobRequest, JobTaskRequest
from perdure.errors import Invalid, Misuse


class JobBuilder:
    """A DAG in the making. Add tasks inside the `with` block, then `await job.submit()`.

    A job that is built and never submitted warns (`RuntimeWarning`) when it is thrown away; one whose block ends with
    an error is given up.
    """

    def __init__(
        self,
        access: Access,
        known: Mapping[str, Task[..., Any]],
        name: str,
        on_failure: FailurePolicy = "fail",
        metadata: Any = None,
    ) -> None:
        self.name = name
        self.nodes: dict[str, Node[Any]] = {}
        self._access = access
        self._known = known
        self._on_failure: FailurePolicy = on_failure
        self._metadata = metadata
        self._requests: list[JobTaskRequest] = []
        self._numbers: Counter[str] = Counter()
        self._done = False

    def __enter__(self) -> "JobBuilder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._done = self._done or error is not None

    @overload
    def add(
        self,
        task: Task[..., R] | Call[R],
        /,
        *args: Any,
        after: Sequence[Node[Any] | str] = (),
        name: str | None = None,
        trigger: Trigger = "all_succeeded",
        on_failure: FailurePolicy | None = None,
        payload: Any = None,
        queue: str | None = None,
        priority: int | None = None,
        delay: float | None = None,
        run_at: datetime | None = None,
        max_attempts: int | None = None,
        retry: Retry | None = None,
        timeout: float | None = None,
        ttl: float | None = None,
        execution_limit: float | None = None,
        lease: float | None = None,
        max_losses: int | None = None,
        on_loss: OnLoss | None = None,
        capabilities: list[str] | None = None,
        labels: dict[str, str] | None = None,
        metadata: Any = None,
        unique: Unique | None = None,
        unique_key: str | None = None,
        **fields: Any,
    ) -> Node[R]: ...
    @overload
    def add(self, task: str, /, *args: Any, **fields: Any) -> Node[Any]: ...
    def add(
        self,
        task: Target,
        /,
        *args: Any,
        after: Sequence[Node[Any] | str] = (),
        name: str | None = None,
        trigger: Trigger = "all_succeeded",
        on_failure: FailurePolicy | None = None,
        payload: Any = None,
        **fields: Any,
    ) -> Node[Any]:
        """Add a task that runs after those in `after` and those whose `result` is one of its fields.

        `name` is how the job calls it; by default the last part of its kind and a number. `trigger` tells which ends
        of its parents let it run. `on_failure` is what a parent's failure means here; the job's policy by default.
        Options and the handler's fields are as for `App.submit`. Raises `Invalid` or `Misuse`.
        """
        if self._done:
            raise Misuse(f"job {self.name!r} is submitted or given up: no task can be added to it any more")
        if isinstance(after, str | Node):
            example = repr(after) if isinstance(after, str) else "node"
            raise Misuse(f"after= takes a list of tasks, not one: write after=[{example}]")
        own = {"after": after, "name": name, "trigger": trigger != "all_succeeded", "on_failure": on_failure}
        said = [keyword for keyword, value in own.items() if value]
        call = call_of(task, args, fields, payload=payload, known=self._known, keywords=said)
        chosen = self._name_for(call.kind, name)
        bindings = {field: _names_of(results) for field, results in call.results.items()}
        bound = [each for names in bindings.values() for each in ([names] if isinstance(names, str) else names)]
        parents = self._parents(chosen, [*after, *bound])
        request = call.request()
        self._requests.append(
            JobTaskRequest(
                **{field: getattr(request, field) for field in request.__struct_fields__},
                name=chosen,
                depends_on=[Dependency(name=each, on_failure=on_failure) if on_failure else each for each in parents],
                trigger=trigger,
                bindings=bindings,
            )
        )
        return self.nodes.setdefault(chosen, Node(chosen, call.task))

    def request(self, idempotency_key: str | None = None) -> JobRequest:
        """What the engine is asked for."""
        return JobRequest(
            name=self.name,
            tasks=self._requests,
            on_failure=self._on_failure,
            metadata=self._metadata,
            idempotency_key=idempotency_key,
        )

    def hand_over(self) -> JobRequest:
        """The same, for somebody else to submit."""
        self._done = True
        return self.request()

    async def submit(self, idempotency_key: str | None = None) -> JobHandle:
        """Submit all of it in one transaction, or nothing. The same key again gives the job that it made.

        Raises `Invalid` for what is not a DAG within the limits, `IdempotencyConflict`, `Overloaded`.
        """
        self._done = True
        system = await self._access.system()
        await declare_unknown(system, [node.task for node in self.nodes.values()], self._access.principal)
        named = {each.kind for each in self._requests if self.nodes[each.name].task is None}
        await wonder_at_unknown(system, named, self._access.principal)
        request = self.request(idempotency_key)
        with traced(system, request.tasks) as tasks:
            request.tasks = list(tasks)
            submitted = await system.engine.submit_job(request, self._access.principal)
        handlers = {name: node.task.handler if node.task is not None else None for name, node in self.nodes.items()}
        return JobHandle(self._access, submitted.id, submitted.task_ids, handlers, replayed=submitted.replayed)

    def __del__(self) -> None:
        count = len(getattr(self, "_requests", ()))
        if count and not self._done:
            tasks = "1 task" if count == 1 else f"{count} tasks"
            warnings.warn(
                f"job {self.name!r} with {tasks} was never submitted: call `await job.submit()`",
                RuntimeWarning,
                source=self,
                stacklevel=1,
            )

    def _name_for(self, kind: str, name: str | None) -> str:
        if name is None:
            tail = kind.rpartition(".")[2] or kind
            self._numbers[tail] += 1
            while f"{tail}-{self._numbers[tail]}" in self.nodes:
                self._numbers[tail] += 1
            return f"{tail}-{self._numbers[tail]}"
        if name in self.nodes:
            raise Invalid(f"job {self.name!r} has a task named {name!r} already", field="name", names=[name])
        return name

    def _parents(self, name: str, above: Iterable[Node[Any] | str]) -> list[str]:
        parents: dict[str, None] = {}
        for each in above:
            parent = each if isinstance(each, str) else each.name
            if parent not in self.nodes or not (isinstance(each, str) or self.nodes[parent] is each):
                raise Invalid(
                    f"task {name!r} depends on {parent!r}, which this job does not have (yet): add parents first",
                    field="after",
                    names=[parent],
                )
            parents[parent] = None
        return list(parents)


def _names_of(results: ResultOf | list[ResultOf]) -> str | list[str]:
    return results.name if isinstance(results, ResultOf) else [result.name for result in results]
