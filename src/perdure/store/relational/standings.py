"""How a task stands as far as a claim looks at it, and the workers that might take it."""

from typing import Any

from perdure.domain.gate import GateSort
from perdure.domain.states import TaskState
from perdure.domain.why import AHEAD_MAX, SHOWN_MAX, GateStanding, Line, Obstacle, Server, Standing, why
from perdure.errors import NotFound
from perdure.store.relational import queue_views
from perdure.store.relational.flow import flow_of, without_room
from perdure.store.relational.lanes import Lane
from perdure.store.relational.transaction import Transaction
from perdure.store.worker_times import WorkerTimes


def why_not(tx: Transaction, organization: str, task_id: str, worker_times: WorkerTimes) -> list[Obstacle]:
    """What keeps a task from running, as of one moment. Raises `NotFound`."""
    row = tx.document("view_standing", organization=organization, task=task_id, shown=SHOWN_MAX, most=AHEAD_MAX)
    if row is None:
        raise NotFound(f"there is no task {task_id}", what="task", id=task_id)
    workers = queue_views.workers(tx, organization, worker_times.active_us)
    servers = [
        Server(
            each.id,
            each.kinds,
            each.queues,
            each.organizations,
            each.capabilities,
            each.order,
            each.capacity - each.leases,
            drains=each.capacity == 0,
        )
        for each in workers
        if each.left_us is None
    ]
    standing = _standing_of(row, worker_times.unroutable_us)
    flow = flow_of(tx, organization)
    lane = Lane(organization, standing.queue, standing.kind, standing.capabilities, standing.priority)
    paused, until_us = flow.is_paused_kind(lane), flow.open_until_us(lane)
    full = without_room(tx, flow, lane)
    return why(standing._replace(kind_paused=paused, breaker_until_us=until_us, full=full), servers)


def _standing_of(row: list[Any], unroutable_us: int) -> Standing:
    now_us, state, organization, queue, kind, capabilities, priority, waits, parents, *rest = row
    due_us, expires_us, deadline_us, worker, unroutable_since_us, gate, *rest = rest
    queue_paused, organization_paused, ahead, before = rest
    return Standing(
        now_us,
        TaskState(state),
        organization,
        queue,
        kind,
        tuple(capabilities),
        priority,
        waits,
        tuple(parents),
        due_us,
        expires_us,
        deadline_us,
        worker,
        None if gate is None else _gate_of(gate),
        queue_paused,
        organization_paused,
        ahead,
        tuple(Line(owner, line, served, tuple(needed)) for owner, line, served, needed in before),
        unroutable_us=None if unroutable_since_us is None else unroutable_since_us + unroutable_us,
    )


def _gate_of(row: list[Any]) -> GateStanding:
    sort, name, key, slots, taken, per_us, free_us, ahead, holders = row
    return GateStanding(GateSort(sort), name, key, slots, taken, per_us, free_us, ahead, tuple(holders))
