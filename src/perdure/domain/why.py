"""Why a task does not run: the same conditions that a claim looks at, said for people, with what would free it.

What is told here and what a claim does must never differ: a test blocks tasks in every way, and whenever nothing is
told, the next claim by a worker that fits has to take the task.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from perdure.domain.gate import GateSort
from perdure.domain.likeness import nearest
from perdure.domain.states import HELD, WAITING, TaskState

SHOWN_MAX = 10
"""So many names are told of what holds a task; how many there are is told as well."""


class ObstacleSort(StrEnum):
    """What keeps a task from running. The list is closed: programs may rely on it."""

    ENDED = "ended"
    AT_WORK = "at_work"
    CANCELLING = "cancelling"
    DEPENDENCIES = "dependencies"
    DELAY = "delay"
    RETRY = "retry"
    LIMIT = "limit"
    QUEUE_PAUSED = "queue_paused"
    ORGANIZATION_PAUSED = "organization_paused"
    KIND_PAUSED = "kind_paused"
    BREAKER = "breaker"
    TTL = "ttl"
    DEADLINE = "deadline"
    NO_WORKER = "no_worker"
    WORKERS_BUSY = "workers_busy"
    LINE = "line"


class Obstacle(NamedTuple):
    """One thing that keeps a task from running."""

    sort: ObstacleSort
    text: str
    """What it is, as a sentence."""
    frees: str
    """What would free the task of it, as a sentence."""
    by: tuple[str, ...] = ()
    """What holds it: ids of tasks, names of queues, ids of workers. At most `SHOWN_MAX`."""
    until_us: int | None = None
    """When it is over by itself, or the task ends for it, where that is known: microseconds since 1970 UTC."""
    by_what: str | None = None
    """What sort of thing is named in `by`: `task`, `worker`, `queue`, `kind` or `organization`."""


_HOLDERS = {
    ObstacleSort.AT_WORK: "worker",
    ObstacleSort.CANCELLING: "worker",
    ObstacleSort.DEPENDENCIES: "task",
    ObstacleSort.LIMIT: "task",
    ObstacleSort.QUEUE_PAUSED: "queue",
    ObstacleSort.ORGANIZATION_PAUSED: "organization",
    ObstacleSort.KIND_PAUSED: "kind",
    ObstacleSort.BREAKER: "kind",
    ObstacleSort.NO_WORKER: "worker",
    ObstacleSort.WORKERS_BUSY: "worker",
}
"""What sort of thing an obstacle names, unless it says so itself."""


class GateStanding(NamedTuple):
    """The gate at which a task waits. `holders` are ids of tasks, `ahead` how many wait there before it."""

    sort: GateSort
    name: str
    key: str
    slots: int
    taken: int
    per_us: int | None
    free_us: int | None
    """When the next of its slots is free by itself."""
    ahead: int
    holders: tuple[str, ...]


class FullLimit(NamedTuple):
    """A limit of a queue or an organization, or of a breaker's probes, that has no room now. Of rates only: `per_us`,
    and when the next one may start.
    """

    type: str
    name: str
    slots: int
    per_us: int | None
    free_us: int | None = None


class Line(NamedTuple):
    """What a worker needs to serve a lane."""

    organization: str
    queue: str
    kind: str
    capabilities: tuple[str, ...]


class Standing(NamedTuple):
    """How a task stands, as far as a claim looks at it. Times are microseconds since 1970 UTC, by the store's clock."""

    now_us: int
    state: TaskState
    organization: str
    queue: str
    kind: str
    capabilities: tuple[str, ...]
    priority: int
    waits: int
    parents: tuple[str, ...]
    """Open parents by id, at most `SHOWN_MAX`."""
    due_us: int
    expires_us: int | None
    deadline_us: int | None
    worker: str | None
    gate: GateStanding | None
    queue_paused: bool
    organization_paused: bool
    ahead: int
    """How many queued tasks of its own lane go before it, at most `AHEAD_MAX`."""
    before: tuple["Line", ...]
    """Other lanes that have a queued task which goes before it, or may, because organizations take turns."""
    kind_paused: bool = False
    breaker_until_us: int | None = None
    """When the open breaker of its kind lets probes through."""
    full: tuple[FullLimit, ...] = ()
    unroutable_us: int | None = None
    """When it fails because no worker has its kind, where none has and the store has noted since when."""


class Server(NamedTuple):
    """A worker that was seen not long ago."""

    id: str
    kinds: tuple[str, ...]
    queues: tuple[str, ...]
    organizations: tuple[str, ...]
    capabilities: tuple[str, ...]
    order: str
    free: int
    """How many more leases it may hold."""
    drains: bool = False
    """It finishes what it has and takes nothing more: it told no capacity."""

    def serves(self, line: Line | Standing) -> bool:
        """Whether it works for this queue and organization."""
        return line.queue in self.queues and (not self.organizations or line.organization in self.organizations)

    def fits(self, line: Line | Standing) -> bool:
        """Whether it may have tasks of this lane."""
        return self.serves(line) and line.kind in self.kinds and {*self.capabilities}.issuperset(line.capabilities)


def why(standing: Standing, servers: Sequence[Server]) -> list[Obstacle]:
    """All that keeps a task from running. Empty: the next claim by a worker that fits takes it."""
    return [
        each._replace(by_what=_HOLDERS[each.sort]) if each.by and each.by_what is None else each
        for each in _why(standing, servers)
    ]


def _why(standing: Standing, servers: Sequence[Server]) -> list[Obstacle]:
    if standing.state not in WAITING:
        return [_not_waiting(standing)]
    found = [*_own(standing), *_paused(standing), *map(_full, standing.full), *_workers(standing, servers)]
    return found or _line(standing, servers)


def _line(standing: Standing, servers: Sequence[Server]) -> list[Obstacle]:
    """Those that go first, where nothing else keeps it: each worker that could run it may have others to run before."""
    fitting = [server for server in servers if server.order == "work" and server.fits(standing)]
    others = [line for line in standing.before if any(server.fits(line) for server in fitting)]
    if not standing.ahead and not others:
        return []
    count = f"{standing.ahead:,}" if standing.ahead < AHEAD_MAX else f"{AHEAD_MAX:,} or more"
    parts = [f"{count} of its own kind"] * bool(standing.ahead)
    parts += [f"some of {_counted(len(others), 'other lane')}"] * bool(others)
    text = f"queued tasks go before it: {' and '.join(parts)}"
    return [Obstacle(ObstacleSort.LINE, text, "its turn; more workers or a higher priority bring it sooner")]


AHEAD_MAX = 1_000
"""So many tasks are counted that go before one."""


def _not_waiting(standing: Standing) -> Obstacle:
    state, worker = standing.state, standing.worker or "a worker"
    by = (standing.worker,) if standing.worker else ()
    if state is TaskState.CANCELLING:
        return Obstacle(ObstacleSort.CANCELLING, f"a cancel is requested; {worker} is to stop it", "it cannot", by)
    if state in HELD:
        what = "it is running" if state is TaskState.RUNNING else "it is leased and about to run"
        return Obstacle(ObstacleSort.AT_WORK, f"{what}: {worker} has it", "nothing keeps it: its handler ends it", by)
    return Obstacle(ObstacleSort.ENDED, f"it has ended: {state}", _AFTER_END.get(state, "submit it again"))


_AFTER_END = {
    TaskState.SUCCEEDED: "nothing: it is done",
    TaskState.PARTIALLY_SUCCEEDED: "nothing: it is done",
    TaskState.FAILED: "redrive it",
    TaskState.DEAD_LETTERED: "requeue the dead letter",
}


def _own(standing: Standing) -> list[Obstacle]:
    """What the task itself waits for."""
    found = []
    now = standing.now_us
    if standing.waits:
        text = f"it waits for {_counted(standing.waits, 'open parent')}"
        found.append(Obstacle(ObstacleSort.DEPENDENCIES, text, "their ends", standing.parents))
    if standing.due_us > now:
        retrying = standing.state is TaskState.RETRYING
        sort = ObstacleSort.RETRY if retrying else ObstacleSort.DELAY
        text = "it failed and waits for its next attempt" if retrying else "it is not due yet"
        found.append(Obstacle(sort, text, "its time", (), standing.due_us))
    if standing.gate is not None:
        found.append(_limit(standing.gate))
    if standing.expires_us is not None and standing.expires_us <= now:
        found.append(Obstacle(ObstacleSort.TTL, "its TTL is over: it will expire", "nothing: submit it again"))
    if standing.deadline_us is not None and standing.deadline_us <= now:
        found.append(
            Obstacle(
                ObstacleSort.DEADLINE,
                "the deadline of its execution limit is over: it will fail",
                "nothing: redrive it then",
            )
        )
    return found


def _limit(gate: GateStanding) -> Obstacle:
    key = f" for {gate.key}" if gate.key else ""
    before = f"; before it waits there: {_counted(gate.ahead, 'task')}" if gate.ahead else ""
    if gate.sort is GateSort.RATE:
        text = f"{gate.slots:,} have started in {(gate.per_us or 0) / 1e6:g} s, the limit of {gate.name}{key}{before}"
        return Obstacle(ObstacleSort.LIMIT, text, "time, or a higher rate", gate.holders, gate.free_us)
    if gate.sort is GateSort.ORDER:
        text = f"it is ordered behind another task of {gate.name}{key}{before}"
        return Obstacle(ObstacleSort.LIMIT, text, "the end of the task in front of it", gate.holders)
    if gate.sort is GateSort.FAIR:
        text = f"keys take turns, and another task is in line for {gate.name}{key}{before}"
        return Obstacle(ObstacleSort.LIMIT, text, "the start of the task in front of it", gate.holders)
    text = f"{gate.taken:,} of {gate.slots:,} are at work, the limit of {gate.name}{key}{before}"
    return Obstacle(ObstacleSort.LIMIT, text, "the end of one of them, or a higher limit", gate.holders)


def _paused(standing: Standing) -> list[Obstacle]:
    found = []
    if standing.queue_paused:
        text = f"queue {standing.queue!r} is paused"
        found.append(Obstacle(ObstacleSort.QUEUE_PAUSED, text, "resume the queue", (standing.queue,)))
    if standing.organization_paused:
        text = f"organization {standing.organization!r} is paused"
        found.append(
            Obstacle(ObstacleSort.ORGANIZATION_PAUSED, text, "resume the organization", (standing.organization,))
        )
    if standing.kind_paused:
        text = f"kind {standing.kind!r} is paused"
        found.append(Obstacle(ObstacleSort.KIND_PAUSED, text, "resume the kind", (standing.kind,)))
    until_us = standing.breaker_until_us
    if until_us is not None and until_us > standing.now_us:
        text = f"too many attempts of kind {standing.kind!r} failed: its breaker is open"
        frees = "its time, after which probes may start, or a reset"
        found.append(Obstacle(ObstacleSort.BREAKER, text, frees, (standing.kind,), until_us))
    return found


def _full(limit: FullLimit) -> Obstacle:
    if limit.type == "breaker":
        text = f"the breaker of kind {limit.name!r} is half open, and its probes are under way: {limit.slots:,}"
        frees = "the success of its probes, time for more of them, or a reset"
        return Obstacle(ObstacleSort.BREAKER, text, frees, (limit.name,), limit.free_us)
    holder = f"{limit.type} {limit.name!r}"
    if limit.per_us is not None:
        text = f"{limit.slots:,} have started in {limit.per_us / 1e6:g} s, the limit of {holder}"
        return Obstacle(
            ObstacleSort.LIMIT, text, "time, or a higher rate", (limit.name,), limit.free_us, by_what=limit.type
        )
    text = f"{limit.slots:,} are at work, the limit of {holder}"
    frees = "the end of one of them, or a higher limit"
    return Obstacle(ObstacleSort.LIMIT, text, frees, (limit.name,), by_what=limit.type)


def _workers(standing: Standing, servers: Sequence[Server]) -> list[Obstacle]:
    fitting = [server for server in servers if server.fits(standing)]
    if not fitting:
        return [_no_worker(standing, servers)]
    working = [server for server in fitting if server.order == "work" and not server.drains]
    by = tuple(server.id for server in fitting[:SHOWN_MAX])
    if not working:
        return [_all_away(fitting, by)]
    if not any(server.free > 0 for server in working):
        text = f"all {_counted(len(working), 'worker')} that could run it hold as much as they may"
        return [Obstacle(ObstacleSort.WORKERS_BUSY, text, "the end of what they hold, or another worker", by)]
    return []


def _all_away(fitting: Sequence[Server], by: tuple[str, ...]) -> Obstacle:
    """None of those that fit takes anything more."""
    counted = f"{_counted(len(fitting), 'worker')} could run it"
    if all(server.drains for server in fitting):
        text = f"{counted}, and each drains: it finishes what it has and takes nothing more"
        return Obstacle(ObstacleSort.NO_WORKER, text, "start another worker", by)
    drain = "drains or " if any(server.drains for server in fitting) else ""
    text = f"{counted}, and each {drain}is ordered to pause, drain or stop"
    return Obstacle(ObstacleSort.NO_WORKER, text, "order one of them to work, or start another", by)


def _no_worker(standing: Standing, servers: Sequence[Server]) -> Obstacle:
    serving = [server for server in servers if server.serves(standing)]
    by = tuple(server.id for server in serving[:SHOWN_MAX])
    if not serving:
        text = f"no live worker serves queue {standing.queue!r}"
        frees = f"start a worker for queue {standing.queue!r}; until then it waits"
        return Obstacle(ObstacleSort.NO_WORKER, text, frees)
    if not any(standing.kind in server.kinds for server in serving):
        text = f"none of {_counted(len(serving), 'worker')} in queue {standing.queue!r} has kind {standing.kind!r}"
        near = nearest(standing.kind, {kind for each in serving for kind in each.kinds})
        meant = f", or was {near!r} meant? Else" if near is not None else ""
        frees = f"start a worker that has {standing.kind!r}{meant or '; else'} the task fails as unroutable"
        return Obstacle(ObstacleSort.NO_WORKER, text, frees, by, standing.unroutable_us)
    needed = ", ".join(standing.capabilities)
    text = f"no worker with kind {standing.kind!r} in queue {standing.queue!r} has what it needs: {needed}"
    return Obstacle(ObstacleSort.NO_WORKER, text, "start a worker with these capabilities", by)


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"
