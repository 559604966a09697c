"""Tasks that running attempts add to their own jobs.

A growth is refused or written under locks that keep the rest of the world as it was seen: those of the attempt's task,
of the tasks that the new ones wait for and of those that shall wait for them, then that of the job, which lets one
growth of a job in after the other. Whatever else moved before the locks were there makes the transaction run again.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from perdure.domain import limits
from perdure.domain.attempt import Hold
from perdure.domain.job import check_grown, check_totals, check_width, shown_names
from perdure.domain.states import TaskState
from perdure.domain.task import FailurePolicy, Task
from perdure.errors import Conflict, Invalid, PerdureError
from perdure.store.job_ledger import Grower, Grown, Growth, Link
from perdure.store.relational.admission import admission
from perdure.store.relational.counting import CANCELLING, LEASED, RUNNING, count_moves
from perdure.store.relational.ending import enter, mark_gated, settle_touched
from perdure.store.relational.gates import gated
from perdure.store.relational.renewing import lease_lost
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.relational.unique import refuse_job_tasks
from perdure.store.wakeups import Topic

NAMES_TOLD = 20
"""How many names of added tasks the history tells."""

Write = Callable[[Sequence[Task], int], list[int]]
"""Writes new tasks of a job, by its number, and gives their numbers."""
Again = Callable[[str], Exception]
"""The error that has the whole transaction run again, with the fact that makes it so."""


class _Standing(NamedTuple):
    n: int
    lane: int
    state: str
    cancel_us: int | None
    generation: int
    job: int
    job_id: str
    policy: FailurePolicy
    principal: str
    initiator: str
    name: str


class _Known(NamedTuple):
    """A task that the job has."""

    n: int
    id: str
    request_hash: str | None


def grower(tx: Transaction, hold: Hold) -> Grower:
    """Whose job an attempt may add tasks to."""
    standing = _standing(tx, hold)
    return Grower(standing.job_id, standing.policy, standing.principal, standing.initiator)


def grow(tx: Transaction, growths: Sequence[Growth], write: Write, again: Again) -> list[Grown | PerdureError]:
    """Add tasks to jobs, one growth after the other: a later one of the same call sees what an earlier one added."""
    answers: list[Grown | PerdureError] = []
    for each in growths:
        try:
            answers.append(_Growing(tx, each, write, again).answer())
        except (Conflict, Invalid) as refusal:
            answers.append(refusal)
    return answers


def _standing(tx: Transaction, hold: Hold) -> _Standing:
    """How the attempt stands. Raises `LeaseLost`, and `Conflict` where it may not add anything."""
    bindings = {"organization": hold.organization, "task": hold.task_id}
    row = tx.document("growth_standing", **bindings, attempt=hold.attempt_id, token=hold.token)
    if row is None:
        raise lease_lost(hold)
    standing = _Standing(*row)
    if standing.job is None:
        raise Conflict(
            f"task {hold.task_id} has no job that tasks could be added to: submit it as a task of a job",
            task_id=hold.task_id,
        )
    if standing.state == CANCELLING:
        raise Conflict(
            f"task {hold.task_id} is being cancelled: stop, nothing is added to its job any more",
            task_id=hold.task_id,
            cancel_us=standing.cancel_us,
        )
    return standing


class _Growing:
    """One growth on its way."""

    def __init__(self, tx: Transaction, growth: Growth, write: Write, again: Again) -> None:
        self._tx = tx
        self._growth = growth
        self._write = write
        self._again = again
        self._standing = _standing(tx, growth.hold)
        self._asked = {str(task.rare.name): task for task in growth.tasks}
        named = {name for link in growth.links for name in link[:2]}
        self._names = batch(sorted(named | self._asked.keys()))
        self._known = self._read_names()

    def answer(self) -> Grown | PerdureError:
        """Add what is new. Raises a `Refused`; nothing is written then."""
        fresh = self._fresh()
        if fresh:
            self._lock(fresh)
            refusal = self._refusal(fresh)
            if refusal is not None:
                return refusal
            self._add(fresh)
        ids = {name: self._known[name].id if name in self._known else task.id for name, task in self._asked.items()}
        return Grown(self._standing.job_id, ids, len(fresh))

    def _read_names(self) -> dict[str, _Known]:
        rows = self._tx.document("growth_names", job=self._standing.job, batch=self._names)
        return {name: _Known(*row) for name, *row in rows}

    def _fresh(self) -> dict[str, Task]:
        """The tasks that the job does not have. Raises `Conflict` for a name that is somebody else's."""
        for name, task in self._asked.items():
            known = self._known.get(name)
            if known is not None and known.request_hash != task.rare.request_hash:
                raise Conflict(
                    f"job {self._standing.job_id} has another task named {name!r}: give the new one another name",
                    names=[name],
                    task_id=known.id,
                )
        return {name: task for name, task in self._asked.items() if name not in self._known}

    def _links(self, fresh: Mapping[str, Task]) -> tuple[list[Link], list[Link]]:
        """The links that are new: to new tasks, and from new tasks to those that the job has."""
        to_new = [link for link in self._growth.links if link.child in fresh]
        onward = [link for link in self._growth.links if link.parent in fresh and link.child not in self._asked]
        return to_new, onward

    def _lock(self, fresh: Mapping[str, Task]) -> None:
        """Hold everything still that is going to be looked at."""
        to_new, onward = self._links(fresh)
        self._above = {link.parent for link in to_new if link.parent not in fresh}
        self._below = {link.child for link in onward}
        _refuse_unknown(to_new, onward, (self._above | self._below) - self._known.keys())
        around = {self._known[name].n for name in self._above | self._below}
        rows = self._tx.document("growth_lock", batch=batch(sorted({self._standing.n, *around})))
        self._states = {n: (state, waits) for n, state, waits in rows}
        if any(state is None for state, _ in self._states.values()):
            raise self._again("a task that others are to wait for moved while its row was waited for")
        hold, known = self._growth.hold, self._known
        self._job = self._tx.document("job_look", organization=hold.organization, id=self._standing.job_id)
        self._standing = _standing(self._tx, hold)
        self._known = self._read_names()
        if self._known != known:
            raise self._again("another attempt has added tasks to the same job meanwhile")

    def _refusal(self, fresh: Mapping[str, Task]) -> PerdureError | None:
        """Why the tasks cannot be added. Raises `Conflict` and `Invalid`."""
        _number, _state, _open, stopping, _initiator = self._job
        if stopping is not None:
            raise Conflict(
                f"job {self._standing.job_id} is being cancelled: nothing is added to it any more",
                job_id=self._standing.job_id,
            )
        self._refuse_size(fresh)
        check = admission(self._tx, {self._growth.hold.organization})
        wanted = Counter(task.terms.queue for task in fresh.values())
        full = check(self._growth.hold.organization, wanted) if check is not None else None
        return full or refuse_job_tasks(self._tx, list(fresh.values()))

    def _refuse_size(self, fresh: Mapping[str, Task]) -> None:
        to_new, onward = self._links(fresh)
        total, edges = self._tx.document("growth_size", job=self._standing.job)
        check_totals(total + len(fresh), edges + len(to_new) + len(onward))
        around = {self._known[name].n: name for name in self._above | self._below}
        if around:
            children, parents = Counter(link.parent for link in to_new), Counter(link.child for link in onward)
            rows = self._tx.document("growth_around", batch=batch(sorted(around)), parent=self._standing.n)
            for n, below, above, follows in rows:
                name = around[n]
                check_width(name, below + children[name])
                check_width(name, above + parents[name])
                if name in self._below:
                    self._refuse_let_go(name, n, follows)
        # No path is longer than there are tasks, and no circle closes without a way back from what is to wait.
        back = self._below and self._above - {self._standing.name}
        if total + len(fresh) > limits.JOB_MAX_DEPTH or back:
            self._refuse_shape(fresh, to_new, onward)

    def _refuse_let_go(self, name: str, n: int, follows: bool) -> None:
        state, waits = self._states[n]
        if not follows:
            raise Conflict(
                f"task {name!r} cannot wait for new tasks: it does not depend on {self._standing.name!r} itself",
                names=[name],
            )
        if state != TaskState.PENDING or waits == 0:
            raise Conflict(f"task {name!r} cannot wait for new tasks any more: it was let go already", names=[name])

    def _refuse_shape(self, fresh: Mapping[str, Task], to_new: Sequence[Link], onward: Sequence[Link]) -> None:
        graph = dict(self._tx.document("growth_graph", job=self._standing.job))
        parents: dict[str, list[str]] = {name: [] for name in fresh}
        for link in to_new:
            parents[link.child].append(link.parent)
        before: dict[str, list[str]] = {}
        for link in onward:
            before.setdefault(link.parent, []).append(link.child)
        check_grown(graph, parents, before)

    def _add(self, fresh: Mapping[str, Task]) -> None:
        tx, job = self._tx, self._standing.job
        to_new, onward = self._links(fresh)
        numbers = {name: known.n for name, known in self._known.items()}
        numbers.update(zip(fresh, self._write(list(fresh.values()), job), strict=True))
        limited = gated(list(fresh.values()), [numbers[name] for name in fresh])
        if limited:
            mark_gated(tx, limited)
        tx.run("job_grow", job=job, count=len(fresh))
        links = [*to_new, *onward]
        if links:
            rows = [(numbers[link.parent], numbers[link.child], link.policy) for link in links]
            tx.run("edge_insert", batch=batch(rows))
        if onward:
            more = batch(sorted(Counter(numbers[link.child] for link in onward).items()))
            tx.run("growth_parents", batch=more)
            tx.run("growth_waits", batch=more)
        self._start()
        anew = sorted({numbers[link.child] for link in to_new if link.parent not in fresh})
        if anew:
            tx.run("waits_recount", batch=batch(anew))
            tx.run("touched_stage", batch=batch(anew))
            settle_touched(tx)
        if limited:
            enter(tx, limited)
        self._remember(fresh)
        tx.announce(Topic.READY)

    def _start(self) -> None:
        standing = self._standing
        if standing.state == LEASED:
            self._tx.run("start", batch=batch([(standing.n, self._growth.ran_us)]))
            count_moves(self._tx, [(standing.lane, LEASED, RUNNING, 1)])

    def _remember(self, fresh: Mapping[str, Task]) -> None:
        standing, hold = self._standing, self._growth.hold
        told = {"tasks": len(fresh), "names": shown_names(list(fresh), NAMES_TOLD), "attempt": hold.attempt_id}
        row = (hold.organization, standing.n, standing.job, standing.generation, "grown", "worker", None, batch(told))
        self._tx.run("event_insert", batch=batch([row]))


def _refuse_unknown(to_new: Sequence[Link], onward: Sequence[Link], unknown: set[str]) -> None:
    for link in to_new:
        if link.parent in unknown:
            raise Invalid(
                f"task {link.child!r} depends on {link.parent!r}, which the job does not have",
                field="tasks",
                names=[link.parent],
            )
    for link in onward:
        if link.child in unknown:
            raise Invalid(
                f"task {link.parent!r} is to go before {link.child!r}, which the job does not have",
                field="tasks",
                names=[link.child],
            )
