"""Writers of one database, each with a session of its own, whose transactions a test opens, leaves open and commits."""

import itertools
import json
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg

from conformance.making import task_of
from perdure.ambient import Ids, SystemClock
from perdure.domain import limits
from perdure.domain.attempt import Lease
from perdure.domain.settlement import Settlement
from perdure.domain.task import Body, Edge, Job, Rare, Task, Terms, Trigger
from perdure.store.ledger import ClaimRequest, Guard, Settled, Settling, WorkerInfo
from perdure.store.postgres import job_submission, settling, submission
from perdure.store.postgres.claiming import Claims
from perdure.store.postgres.clock import StoreClock
from perdure.store.postgres.connecting import READ_COMMITTED, Address, Connector
from perdure.store.postgres.session import Limits
from perdure.store.postgres.statements import STATEMENTS
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational import registering
from perdure.store.relational.lanes import Lanes

DONE = Settlement.succeeded(Body(b'{"answer":42}'))
WAIT_MS = 20_000

_numbers = itertools.count(1)


def ids() -> Ids:
    """Ids that nobody else makes."""
    return Ids(SystemClock(), random.Random(next(_numbers)).getrandbits)


def task(id: str, **given: Any) -> Task:
    """A task of the usual kind."""
    usual: dict[str, Any] = {
        "organization": "default",
        "kind": "work",
        "queue": "default",
        "priority": limits.PRIORITY_DEFAULT,
        "capabilities": (),
        "payload": '{"n":1}',
        "encoding": "json",
        "principal": "alice",
        "initiator": "alice",
        "execution_limit_us": limits.EXECUTION_LIMIT_DEFAULT_US,
        "lease_us": limits.LEASE_DEFAULT_US,
        "max_attempts": 3,
        "max_losses": 3,
        "on_loss": "retry",
        "trigger": "all_succeeded",
        "if_failed": "fail",
        "waits": 0,
    }
    nothing: dict[str, Any] = dict.fromkeys((*Terms._fields, *Rare._fields))
    return task_of(**{**nothing, **usual, "id": id, **given})


def with_trigger(task: Task, trigger: Trigger) -> Task:
    """The task with another trigger."""
    return task._replace(terms=task.terms._replace(trigger=trigger))


def with_options(task: Task, options: str | None) -> Task:
    """The task with other options."""
    return task._replace(rare=task.rare._replace(options=options))


def job(ids: Ids, graph: dict[str, Sequence[str]]) -> Job:
    """A job from `{name: [parents]}`."""
    made = {name: ids.new() for name in graph}
    job_id = ids.new()
    tasks = tuple(task(made[name], job=job_id, name=name, waits=len(parents)) for name, parents in graph.items())
    edges = tuple(Edge(made[parent], made[child], "fail") for child, parents in graph.items() for parent in parents)
    return Job(job_id, "default", "a job", "fail", "alice", "alice", None, None, None, tasks, edges)


def settlings(leases: Sequence[Lease], settlement: Settlement = DONE, digest: str = "d" * 32) -> list[Settling]:
    """Ends of these attempts by their holder."""
    return [Settling(lease.hold, Guard.HOLDER, settlement, digest) for lease in leases]


class Writer:
    """One session, with what a process remembers between its transactions."""

    def __init__(self, url: str, isolation: str = READ_COMMITTED) -> None:
        self.session = Connector(Address(url), Limits(WAIT_MS, WAIT_MS, WAIT_MS), isolation).connect()
        self.claims = Claims()
        self.lanes = Lanes()
        self.ids = ids()
        self.time = StoreClock(None)

    def begin(self) -> Transaction:
        """Open a transaction, as a flush does."""
        now_us = self.session.begin(durable=False)
        return Transaction(self.session.connection, now_us, self.session.wire, time=self.time)

    def commit(self, tx: Transaction) -> None:
        """Commit it, and do what waited for that."""
        self.session.commit()
        tx.committed()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """A transaction that is committed at the end."""
        tx = self.begin()
        try:
            yield tx
        except BaseException:
            self.session.roll_back()
            raise
        self.commit(tx)

    def register(self, worker: str = "w", capacity: int = 100_000, **given: Any) -> None:
        """Register a worker for the usual kind and queue."""
        usual: dict[str, Any] = {"kinds": ("work",), "queues": ("default",), "organizations": (), "capabilities": ()}
        info = WorkerInfo(worker, worker, "host", 1, "1", "build", **{**usual, **given}, capacity=capacity)
        with self.transaction() as tx:
            registering.register(tx, info)

    def tasks(self, count: int, **given: Any) -> list[Task]:
        """Tasks that are not submitted yet."""
        return [task(self.ids.new(), **given) for _ in range(count)]

    def submit(self, tasks: Sequence[Task]) -> list[Any]:
        """Submit tasks in a transaction of their own."""
        with self.transaction() as tx:
            return submission.submit(tx, tasks, self.lanes)

    def submit_jobs(self, jobs: Sequence[Job]) -> list[Any]:
        """Submit jobs in a transaction of their own."""
        with self.transaction() as tx:
            return job_submission.submit_jobs(tx, jobs, self.lanes)

    def leases(self, count: int) -> list[tuple[str, str]]:
        """Ids and tokens for attempts to be."""
        return [(self.ids.new(), self.ids.token()) for _ in range(count)]

    def claim_in(self, tx: Transaction, count: int, worker: str = "w") -> list[Lease]:
        """Claim within an open transaction."""
        return self.claims.claim(tx, [ClaimRequest(worker, self.leases(count))], self.lanes)[0]

    def claim(self, count: int, worker: str = "w") -> list[Lease]:
        """Claim in a transaction of its own."""
        with self.transaction() as tx:
            return self.claim_in(tx, count, worker)

    def settle(self, given: Sequence[Settling]) -> list[Settled]:
        """Settle in a transaction of its own."""
        with self.transaction() as tx:
            return settling.settle(tx, given)

    def close(self) -> None:
        """Let go of the session."""
        self.session.close()


class Watched(Transaction):
    """A transaction that remembers what its statements were given."""

    def __init__(self, connection: psycopg.Connection[Any], now_us: int) -> None:
        super().__init__(connection, now_us)
        self.given: dict[str, dict[str, Any]] = {}

    def run(self, name: str, /, **bindings: Any) -> list[tuple[Any, ...]]:
        staged = {stage: f"[{','.join(self._staged.get(stage, ()))}]" for stage in STATEMENTS[name].reads}
        self.given[name] = {**bindings, **staged, "now": self.now_us}
        return super().run(name, **bindings)

    def run_together(self, named: Sequence[tuple[str, dict[str, Any]]]) -> list[list[tuple[Any, ...]]]:
        self.given |= {name: {**bindings, "now": self.now_us} for name, bindings in named}
        return super().run_together(named)

    def plan(self, name: str, *, analyze: bool = False) -> dict[str, Any]:
        """The plan of a statement as it was last run here. `analyze` runs it once more."""
        statement = psycopg.ClientCursor(self.connection).mogrify(STATEMENTS[name].text, self.given[name])
        options = "ANALYZE, BUFFERS, FORMAT JSON" if analyze else "FORMAT JSON"
        ((plan,),) = self.connection.execute(f"EXPLAIN ({options}) {statement}", prepare=False).fetchall()
        found: dict[str, Any] = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
        return found


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A plan's nodes."""
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)
