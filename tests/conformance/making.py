"""Short ways to make what the tests are about: tasks, jobs, workers, attempts in every state."""

import hashlib
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conformance.stores import ManualClock, Plug, Snapshot, differences
from perdure.ambient import Ids
from perdure.domain import limits
from perdure.domain.attempt import Hold, Lease, Part, Renewal, Report
from perdure.domain.job import meaning_of_failure
from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import Failure
from perdure.domain.retry import Retry
from perdure.domain.settlement import (
    Settlement,
    settle_cancel_overdue,
    settle_loss,
    settle_overdue,
    settle_revoked,
)
from perdure.domain.states import Reason, TaskState
from perdure.domain.task import Body, Edge, FailurePolicy, Job, Rare, Task, Terms
from perdure.errors import PerdureError
from perdure.store.ledger import (
    Cancellation,
    Cancelled,
    ClaimRequest,
    Doubtful,
    Guard,
    JobSubmitted,
    Redrive,
    Renewed,
    SettleAnswer,
    Settled,
    Settling,
    Submitted,
    WorkerInfo,
)
from perdure.store.store import Store
from perdure.store.views import JobView, TaskView

ORGANIZATION = "default"
KIND = "work"
QUEUE = "default"
RESULT = Body(b'{"answer":42}')
BOOM = Failure("ValueError", "boom", "Traceback ...")
FIXED = Retry(backoff="fixed", base=10.0, jitter=0.0)
HOUR = 3600

DONE = Settlement.succeeded(RESULT, "all done")
PARTLY_DONE = Settlement.succeeded_partly(RESULT, "most done")
FAILED = Settlement.failed(BOOM, Reason.EXHAUSTED, dead_letters=True)
FAILED_UNKEPT = Settlement.failed(BOOM, Reason.EXHAUSTED, dead_letters=False)


def us(seconds: float) -> int:
    """Seconds as microseconds."""
    return round(seconds * SECOND_US)


def retry_in(seconds: float) -> Settlement:
    """A failure that is tried again after some seconds."""
    return Settlement.retry(BOOM, us(seconds))


def task_of(**fields: Any) -> Task:
    """A task by all of its fields, be they its own or its terms'."""
    terms = Terms(**{name: fields.pop(name) for name in Terms._fields})
    own = {name: fields.pop(name) for name in ("id", "payload")}
    return Task(**own, terms=terms, rare=Rare(**fields))


def digest_of(settlement: Settlement) -> str:
    """A name for a settlement: equal ones have equal names."""
    return hashlib.sha256(repr(settlement).encode()).hexdigest()[:32]


def part(sequence: int, data: bytes = b'"piece"', key: str | None = None, final: bool = False) -> Part:
    """A piece of a result, named when it has a key of its own."""
    checksum = hashlib.sha256(data).hexdigest()
    return Part(sequence, key or f"part-{sequence}", key is not None, checksum, Body(data), final)


class Family:
    """A submitted job: the ids of its tasks by name."""

    def __init__(self, id: str, ids: Mapping[str, str]) -> None:
        self.id = id
        self.ids = dict(ids)
        self.names = {task: name for name, task in ids.items()}

    def __getitem__(self, name: str) -> str:
        return self.ids[name]


class World:
    """One open store, a clock that stands until it is moved, and short ways to say what happens."""

    def __init__(self, store: Store, clock: ManualClock, plug: Plug, folder: Path) -> None:
        self.store = store
        self.clock = clock
        self.plug = plug
        self.folder = folder
        self.ledger = store.ledger
        self.views = store.views
        self.definitions = store.definitions
        self.ids = Ids(clock, random.Random(7).getrandbits)

    # Time and the whole database

    def advance(self, seconds: float) -> None:
        """Let seconds pass."""
        self.clock.advance(us(seconds))

    async def now_us(self) -> int:
        """The store's time."""
        return await self.ledger.now_us()

    def snapshot(self) -> Snapshot:
        """Every row of every table."""
        return self.plug.snapshot(self.folder)

    @contextmanager
    def unchanged(self, late_results: bool = False) -> Iterator[None]:
        """What happens inside must not change one row (notes of late results aside when `late_results`)."""
        before = self.snapshot()
        yield
        after = self.snapshot()
        if late_results:
            before, after = self.plug.without_late_results(before), self.plug.without_late_results(after)
        changed = differences(before, after)
        assert not changed, "the store changed:\n" + "\n".join(changed)

    # Submitting

    def task(self, **given: Any) -> Task:
        """A task of the usual kind; `seconds` in `delay`, `ttl`, `lease`, `timeout` and `execution_limit`."""
        for name in ("delay", "ttl", "lease", "timeout", "execution_limit"):
            if name in given:
                given[f"{name}_us"] = us(given.pop(name))
        usual: dict[str, Any] = {
            "id": self.ids.new(),
            "organization": ORGANIZATION,
            "kind": KIND,
            "queue": QUEUE,
            "priority": limits.PRIORITY_DEFAULT,
            "capabilities": (),
            "payload": '{"n":1}',
            "encoding": "json",
            "principal": "alice",
            "initiator": "alice",
            "delay_us": None,
            "run_at_us": None,
            "ttl_us": None,
            "execution_limit_us": limits.EXECUTION_LIMIT_DEFAULT_US,
            "timeout_us": None,
            "lease_us": limits.LEASE_DEFAULT_US,
            "max_attempts": 3,
            "max_losses": 3,
            "on_loss": "retry",
            "idempotency_key": None,
            "request_hash": None,
            "job": None,
            "name": None,
            "trigger": "all_succeeded",
            "if_failed": "fail",
            "waits": 0,
            "retry": None,
            "options": None,
        }
        return task_of(**{**usual, **given})

    async def submit(self, **given: Any) -> str:
        """Submit one task; its id."""
        (answer,) = await self.ledger.submit([self.task(**given)])
        assert isinstance(answer, Submitted), answer
        return answer.id

    async def submit_all(self, tasks: Sequence[Task]) -> list[Submitted | PerdureError]:
        """Submit tasks in one call."""
        return await self.ledger.submit(tasks)

    def job(
        self,
        graph: Mapping[str, Sequence[str]],
        policy: FailurePolicy = "fail",
        edges: Mapping[tuple[str, str], str] | None = None,
        tasks: Mapping[str, Mapping[str, Any]] | None = None,
        **given: Any,
    ) -> Job:
        """A job from `{name: [parents]}`; `edges` overrides the policy of (parent, child), `tasks` a task's fields."""
        ids = {name: self.ids.new() for name in graph}
        job_id = given.pop("id", None) or self.ids.new()
        declared = edges or {}
        plain = "continue" if policy == "continue" else "fail"
        leaving: dict[str, list[Any]] = {name: [] for name in graph}
        made: list[Edge] = []
        for child, parents in graph.items():
            for parent in parents:
                said = declared.get((parent, child))
                leaving[parent].append(said or policy)
                made.append(Edge(ids[parent], ids[child], "continue" if (said or plain) == "continue" else "fail"))
        members = tuple(
            self.task(
                id=ids[name],
                job=job_id,
                name=name,
                waits=len(parents),
                if_failed=meaning_of_failure(policy, leaving[name]),
                **{"organization": given.get("organization", ORGANIZATION), **(tasks or {}).get(name, {})},
            )
            for name, parents in graph.items()
        )
        usual: dict[str, Any] = {
            "organization": ORGANIZATION,
            "name": "a job",
            "principal": "alice",
            "initiator": "alice",
            "metadata": None,
            "idempotency_key": None,
            "request_hash": None,
        }
        return Job(id=job_id, policy=policy, tasks=members, edges=tuple(made), **{**usual, **given})

    async def submit_job(self, graph: Mapping[str, Sequence[str]], **given: Any) -> Family:
        """Submit one job."""
        (answer,) = await self.ledger.submit_jobs([self.job(graph, **given)])
        assert isinstance(answer, JobSubmitted), answer
        return Family(answer.id, answer.task_ids)

    # Workers and attempts

    async def worker(self, id: str = "w", **given: Any) -> str:
        """Register a worker for the usual kind and queue."""
        usual: dict[str, Any] = {
            "name": id,
            "host": "host",
            "pid": 1,
            "version": "1",
            "build": "build-1",
            "kinds": (KIND,),
            "queues": (QUEUE,),
            "organizations": (),
            "capabilities": (),
            "capacity": 100_000,
        }
        await self.ledger.register(WorkerInfo(id=id, **{**usual, **given}))
        return id

    def leases(self, count: int) -> list[tuple[str, str]]:
        """Ids and tokens for attempts to be."""
        return [(self.ids.new(), self.ids.token()) for _ in range(count)]

    async def claim(self, count: int = 1, worker: str = "w") -> list[Lease]:
        """Claim at most `count` tasks."""
        return await self.ledger.claim(ClaimRequest(worker, self.leases(count)))

    async def claim_one(self, worker: str = "w") -> Lease:
        """Claim exactly one task."""
        (lease,) = await self.claim(1, worker)
        return lease

    async def lease(self, **given: Any) -> Lease:
        """Submit a task and claim it, by a worker that has been registered."""
        task_id = await self.submit(**given)
        lease = await self.claim_one()
        assert lease.hold.task_id == task_id
        return lease

    async def start(self, lease: Lease) -> Renewed | None:
        """Say that the handler began."""
        return await self.renew(lease, started=True)

    async def renew(self, lease: Lease | Hold, started: bool = False) -> Renewed | None:
        """Renew one lease."""
        hold = lease.hold if isinstance(lease, Lease) else lease
        (answer,) = await self.ledger.renew([Renewal(hold, started)])
        return answer

    async def report(self, lease: Lease | Hold, **given: Any) -> Any:
        """Send one report."""
        hold = lease.hold if isinstance(lease, Lease) else lease
        (answer,) = await self.ledger.report([Report(hold, **given)])
        return answer

    async def settle(
        self,
        lease: Lease | Hold,
        settlement: Settlement,
        guard: Guard = Guard.HOLDER,
        digest: str | None = None,
    ) -> Settled:
        """Settle one attempt."""
        (answer,) = await self.ledger.settle([settling(lease, settlement, guard, digest)])
        return answer

    async def finish(self, *leases: Lease, settlement: Settlement = DONE) -> None:
        """Settle attempts in one call, all of which must be applied."""
        answers = await self.ledger.settle([settling(lease, settlement) for lease in leases])
        assert [answer.answer for answer in answers] == [SettleAnswer.APPLIED] * len(leases)

    async def run(self, family: Family, *names: str, settlement: Settlement = DONE) -> None:
        """Claim and settle, in one call each, the tasks of a job with these names; they must all be claimable."""
        held = {family.names[lease.hold.task_id]: lease for lease in await self.claim(len(names))}
        assert set(held) == set(names)
        await self.finish(*held.values(), settlement=settlement)

    async def sweep(self, charged: bool = True, retry: Retry = FIXED, limit: int = 1000) -> list[Settled]:
        """What the duty for lost and overdue attempts does: find, decide, settle."""
        found = await self.ledger.find_doubtful(limit)
        return await self.ledger.settle([doubt_settled(each, retry, charged) for each in found])

    # Operators

    async def cancel(self, task_id: str, **given: Any) -> Cancelled:
        """Request that a task shall not run."""
        usual: dict[str, Any] = {
            "organization": ORGANIZATION,
            "actor": "bob",
            "reason": Reason.USER,
            "text": "not needed",
            "note": "for my eyes",
            "grace_us": limits.CANCEL_GRACE_DEFAULT_US,
        }
        (answer,) = await self.ledger.cancel([Cancellation(task_id=task_id, **{**usual, **given})])
        return answer

    async def redrive(self, task_id: str, **given: Any) -> TaskState | PerdureError:
        """Run a dead task again."""
        (answer,) = await self.ledger.redrive([Redrive(ORGANIZATION, task_id, "bob", **given)])
        return answer

    async def cascade(self) -> int:
        """Run the cascade to its end; how many tasks it moved."""
        moved = 0
        for _ in range(10_000):
            swept = await self.ledger.cascade(limits.CASCADE_MAX_TASKS)
            moved += swept.moved
            if not swept.more:
                return moved
        raise AssertionError("the cascade does not come to an end")

    # Looking

    async def look(self, task_id: str, organization: str = ORGANIZATION) -> TaskView:
        """The task as it stands."""
        view = await self.views.task(organization, task_id)
        assert view is not None
        return view

    async def state(self, task_id: str) -> TaskState:
        """The task's state."""
        return (await self.look(task_id)).state

    async def states(self, family: Family) -> dict[str, TaskState]:
        """The states of a job's tasks by name."""
        rows = await self.views.job_tasks(ORGANIZATION, family.id)
        return {row.name: row.state for row in rows}

    async def look_job(self, family: Family) -> JobView:
        """The job as it stands."""
        view = await self.views.job(ORGANIZATION, family.id)
        assert view is not None
        return view


def settling(
    lease: Lease | Hold, settlement: Settlement, guard: Guard = Guard.HOLDER, digest: str | None = None
) -> Settling:
    """A settle of one attempt, by its holder or a duty."""
    hold = lease.hold if isinstance(lease, Lease) else lease
    if guard is not Guard.HOLDER:
        hold = hold._replace(token="")
    return Settling(hold, guard, settlement, digest or digest_of(settlement))


def doubt_settled(doubtful: Doubtful, retry: Retry, charged: bool) -> Settling:
    """How the duty settles an attempt that it found doubtful."""
    facts = doubtful.facts
    settlement = {
        Guard.LEASE_OVER: lambda: settle_loss(facts, retry, 0.0, charged),
        Guard.DEADLINE_OVER: lambda: settle_overdue(facts, False, retry, 0.0),
        Guard.TIMEOUT_OVER: lambda: settle_overdue(facts, True, retry, 0.0),
        Guard.CANCEL_OVER: lambda: settle_cancel_overdue(facts),
        Guard.WORKER_REVOKED: lambda: settle_revoked(facts),
    }[doubtful.guard]()
    return Settling(doubtful.hold, doubtful.guard, settlement, digest_of(settlement))
