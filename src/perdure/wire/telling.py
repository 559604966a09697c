"""From views to bodies and back: the gateway tells, the client reads what was told."""

from typing import Any, NamedTuple, TypeVar

import msgspec

from perdure.domain.task import Body
from perdure.domain.why import Obstacle
from perdure.engine.job_timeline import JobTimeline, TimelineTask
from perdure.engine.schedule_views import ScheduleView
from perdure.store import flow_views, views
from perdure.store.schedules import Fire
from perdure.wire import flow, jobs, operating, schedules, tasks
from perdure.wire.shapes import body_json, instant, instant_us, json_body

T = TypeVar("T")

_BODIES = ("payload", "result", "data")
_NESTED: dict[str, tuple[type, type]] = {
    "cancel": (tasks.CancelRecord, views.CancelView),
    "error": (tasks.TaskError, views.ErrorView),
    "last_error": (tasks.TaskError, views.ErrorView),
}


class _Shape(NamedTuple):
    """The fields of a body by how they travel."""

    plain: tuple[str, ...]
    instants: tuple[tuple[str, str], ...]
    """Names in the body and in the view."""
    nested: tuple[tuple[str, type, type], ...]
    bodies: tuple[str, ...]


def told(view: Any, body: type[T], *, bodies: bool = True) -> T:
    """The body that shows a view. An instant `x_us` becomes `x_at`; without `bodies`, payload and result are left out.

    `body` has the fields of the view, under the names of the wire.
    """
    said: dict[str, Any] = {}
    shape = _SHAPES[body]
    for name in shape.plain:
        said[name] = getattr(view, name)
    for name, source in shape.instants:
        said[name] = instant(getattr(view, source))
    for name, shown, _ in shape.nested:
        inner = getattr(view, name)
        said[name] = None if inner is None else told(inner, shown)
    if bodies:
        for name in shape.bodies:
            said |= _told_body(name, getattr(view, name))
    return body(**said)


def read(body: Any, view: type[T], **more: Any) -> T:
    """The view that a body shows. `more` are fields that do not travel."""
    shape = _SHAPES[type(body)]
    said: dict[str, Any] = dict(more)
    for name in shape.plain:
        value = getattr(body, name)
        said[name] = tuple(value) if isinstance(value, list) else value
    for name, source in shape.instants:
        said[source] = instant_us(getattr(body, name))
    for name, _, inner_view in shape.nested:
        inner = getattr(body, name)
        said[name] = None if inner is None else read(inner, inner_view)
    for name in shape.bodies:
        said[name] = read_body(body, name)
    return view(**said)


def read_body(body: Any, name: str) -> Body | None:
    """The body in field `name`, in its encoding; `None` where none was told."""
    encoding = getattr(body, f"{name}_encoding")
    return None if encoding is msgspec.UNSET else json_body(getattr(body, name), encoding, name)


def _told_body(name: str, body: Body | None) -> dict[str, Any]:
    if body is None:
        return {name: None}
    return {name: body_json(body), f"{name}_encoding": body.encoding}


def ended_task(each: views.Ended) -> tasks.EndedTask:
    """How a task ended, as it is told."""
    said = _told_body("result", each.result)
    error = None if each.error is None else told(each.error, tasks.TaskError)
    return tasks.EndedTask(id=each.id, state=each.state, reason=each.reason, error=error, summary=each.summary, **said)


def read_ended(each: tasks.EndedTask) -> views.Ended:
    """How a task ended, as it was told."""
    error = None if each.error is None else read(each.error, views.ErrorView)
    return views.Ended(each.id, each.state, each.reason, read_body(each, "result"), error, each.summary)


def counts(overview: views.Overview) -> operating.Counts:
    """The whole at a glance, as it is told."""
    by_state: dict[str, int] = {}
    for row in overview.counts:
        by_state[row.state] = by_state.get(row.state, 0) + row.tasks
    return operating.Counts(
        counts=[
            operating.Count(queue=row.queue, kind=row.kind, state=row.state, tasks=row.tasks) for row in overview.counts
        ],
        by_state=by_state,
        workers_active=overview.workers_active,
        oldest_queued_at=instant(overview.oldest_queued_us),
        oldest_active_at=instant(overview.oldest_active_us),
        tasks=overview.tasks,
        attempts=overview.attempts,
        results=overview.results,
    )


def read_counts(body: operating.Counts) -> views.Overview:
    """The whole at a glance, as it was told."""
    return views.Overview(
        counts=tuple(views.CountRow(each.queue, each.kind, each.state, each.tasks) for each in body.counts),
        workers_active=body.workers_active,
        oldest_queued_us=instant_us(body.oldest_queued_at),
        oldest_active_us=instant_us(body.oldest_active_at),
        tasks=body.tasks,
        attempts=body.attempts,
        results=body.results,
    )


def told_timeline(timeline: JobTimeline) -> jobs.JobTimeline:
    """The timeline of a job, as it is told."""
    created_at: Any = instant(timeline.created_us)
    return jobs.JobTimeline(
        id=timeline.id,
        name=timeline.name,
        state=timeline.state,
        created_at=created_at,
        finished_at=instant(timeline.finished_us),
        makespan=timeline.makespan,
        work=timeline.work,
        critical_path=timeline.critical_path,
        critical_tasks=list(timeline.critical_tasks),
        parallelism=timeline.parallelism,
        tasks=[told(each, jobs.TimelineTask) for each in timeline.tasks],
    )


def told_gate(view: flow_views.GateView) -> flow.Gate:
    """A gate, as it is told."""
    return flow.Gate(
        sort=view.sort,
        name=view.name,
        key=view.key,
        slots=view.slots,
        per=view.per,
        when_full=view.when_full,
        taken=view.taken,
        waiting=view.waiting,
        holders=[told(each, flow.Slot) for each in view.holders],
        next=[told(each, flow.Waiter) for each in view.next],
    )


def read_gate(body: flow.Gate) -> flow_views.GateView:
    """A gate, as it was told."""
    return flow_views.GateView(
        sort=body.sort,
        name=body.name,
        key=body.key,
        slots=body.slots,
        per=body.per,
        when_full=body.when_full,
        taken=body.taken,
        waiting=body.waiting,
        holders=tuple(read(each, flow_views.SlotView) for each in body.holders),
        next=tuple(read(each, flow_views.WaiterView) for each in body.next),
    )


def _instant_source(name: str) -> str:
    return "at_us" if name == "at" else name.removesuffix("_at") + "_us"


def _is_instant(name: str) -> bool:
    return name == "at" or name.endswith("_at")


def _shape_of(body: Any) -> _Shape:
    fields: tuple[str, ...] = body.__struct_fields__
    bodies = tuple(name for name in _BODIES if f"{name}_encoding" in fields)
    left_out = {*_NESTED, *bodies, *(f"{name}_encoding" for name in bodies)}
    return _Shape(
        plain=tuple(name for name in fields if name not in left_out and not _is_instant(name)),
        instants=tuple((name, _instant_source(name)) for name in fields if _is_instant(name)),
        nested=tuple((name, *_NESTED[name]) for name in fields if name in _NESTED),
        bodies=bodies,
    )


VIEWS: dict[type, type] = {
    tasks.Task: views.TaskView,
    tasks.Attempt: views.AttemptView,
    tasks.Event: views.EventView,
    tasks.LogLine: views.LogView,
    tasks.Part: views.PartView,
    jobs.Job: views.JobView,
    jobs.JobTask: views.JobTaskView,
    jobs.JobProgress: views.JobProgress,
    jobs.TimelineTask: TimelineTask,
    operating.Queue: views.QueueView,
    operating.KindBreaker: views.BreakerView,
    operating.Worker: views.WorkerView,
    flow.Slot: flow_views.SlotView,
    flow.Waiter: flow_views.WaiterView,
    flow.Pause: flow_views.PauseView,
    schedules.Schedule: ScheduleView,
    schedules.Fire: Fire,
    tasks.Obstacle: Obstacle,
}
"""Which view each body shows."""

_SHAPES: dict[type, _Shape] = {body: _shape_of(body) for body in (*VIEWS, tasks.CancelRecord, tasks.TaskError)}
