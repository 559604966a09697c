"""What an instant of a schedule makes: a task or a job as its definition asks for, which knows its instant."""

from perdure.ambient import Clock, Ids
from perdure.domain.task import Job, Task
from perdure.engine import encoding
from perdure.engine.build_task import TaskBuilder
from perdure.engine.kinds import Kinds, Names
from perdure.engine.requests import Principal
from perdure.engine.schedule_definition import ScheduleDefinition
from perdure.engine.submit_job import build_job
from perdure.errors import Invalid


class ScheduleWork:
    """Builds tasks and jobs. The schedule is their principal, and whoever declared it their initiator."""

    def __init__(self, kinds: Kinds, names: Names, ids: Ids, clock: Clock, payload_max_bytes: int) -> None:
        self._kinds = kinds
        self._names = names
        self._ids = ids
        self._clock = clock
        self._payload_max_bytes = payload_max_bytes

    async def build(
        self, definition: ScheduleDefinition, organization: str, name: str, actor: str, instant_us: int
    ) -> Task | Job:
        """What one instant makes. Raises a `Refused` that names the field."""
        by = Principal(f"schedule:{name}", organization, actor)
        known = await self._kinds.of(organization)
        builder = TaskBuilder(by, known, self._kinds, self._names, self._ids, self._clock, self._payload_max_bytes)
        if definition.task is not None:
            return _stamped(builder.build(definition.task), name, instant_us)
        if definition.job is None:
            raise Invalid("a schedule makes a task or a job: give one of them", field="task")
        job = build_job(definition.job, by, self._ids.new(), builder)
        return job._replace(tasks=tuple(_stamped(task, name, instant_us) for task in job.tasks))


def _stamped(task: Task, name: str, instant_us: int) -> Task:
    options = {} if task.rare.options is None else encoding.decode(task.rare.options)
    options["schedule"] = {"name": name, "instant_us": instant_us}
    return task._replace(rare=task.rare._replace(options=encoding.encode_sorted(options).decode()))
