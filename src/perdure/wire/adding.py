"""Bodies about tasks that running tasks add to their jobs."""

from typing import Annotated

import msgspec
from msgspec import Meta

from perdure.domain import limits
from perdure.wire import shapes
from perdure.wire.jobs import SubmitJobTask
from perdure.wire.shapes import Id
from perdure.wire.working import Hold


class AddTask(SubmitJobTask, kw_only=True, forbid_unknown_fields=True):
    """A task to be added. `before` names tasks of the job that depend on the adding one and shall wait for it too."""

    before: list[shapes.Title] = msgspec.field(default_factory=list)


class AddTasks(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Tasks for the job of a running attempt, all of them or none. The same again adds nothing twice."""

    hold: Hold
    tasks: Annotated[list[AddTask], Meta(extra_json_schema={"minItems": 1, "maxItems": limits.SUBMIT_MAX_TASKS})]
    ran_us: Annotated[int, Meta(ge=0, le=limits.EXECUTION_LIMIT_MAX_US)] = 0
    """How long ago the handler began."""


class TasksAdded(msgspec.Struct, kw_only=True, frozen=True):
    """They are there. `tasks` maps their names to ids; `added` says how many are new by this."""

    job_id: Id
    tasks: dict[str, Id]
    added: int
