"""One store beside its model: what may happen in a life, each time compared. A life is led by whoever chooses."""

import asyncio
import json
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from conformance.making import BOOM, DONE, FIXED, ORGANIZATION, PARTLY_DONE, RESULT, World, doubt_settled, us
from conformance.model import Model, MTask
from conformance.stores import STORES, ManualClock
from perdure.domain.attempt import Hold, Progress
from perdure.domain.outcome import (
    Failed,
    GaveUp,
    HandedBack,
    NotStarted,
    Outcome,
    Snoozed,
    Stopped,
    Succeeded,
    SucceededPartly,
)
from perdure.domain.settlement import Receipt, Settlement, settle
from perdure.domain.states import JobState
from perdure.errors import IdempotencyConflict, LeaseLost, PerdureError
from perdure.store.ledger import ClaimRequest, Doubtful, Guard, Settling, Submitted, WorkerOrder
from perdure.store.views import TaskFilter

T = TypeVar("T")


class Choose(Protocol):
    """Takes one of several possibilities."""

    def __call__(self, possibilities: Sequence[T], /) -> T: ...


WORKERS = {"w": 100, "v": 2}
OUTCOMES: tuple[Outcome, ...] = (
    Succeeded(RESULT),
    SucceededPartly(RESULT),
    Failed(BOOM),
    Failed(BOOM, permanent=True),
    Failed(BOOM, retry_after_us=us(3)),
    Snoozed(us(7)),
    GaveUp("why"),
    HandedBack(),
    Stopped(),
    NotStarted(),
)
BLIND = (DONE, PARTLY_DONE, Settlement.handed_back(), Settlement.acknowledged(), Settlement.expired_unstarted())
"""Settlements that are sent without looking."""

TRIGGERS = ("all_succeeded", "all_succeeded", "all_done", "any_succeeded", "any_failed")
POLICIES = ("fail", "fail", "continue", "cancel_job")
RECENT = 12
"""Mostly the latest things are touched again."""


class Life:
    """The verbs of a life. Each one asks `choose` for what it needs, does it to both, and compares the answers."""

    def __init__(self, store_name: str) -> None:
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="perdure-life-"))
        self.plug = STORES[store_name]
        clock = ManualClock()
        store = self.do(self.plug.open(self.folder, clock))
        self.world = World(store, clock, self.plug, self.folder)
        self.model = Model(self.do(self.world.now_us()))
        self.holds: list[Hold] = []
        self.claims: list[ClaimRequest] = []
        self.sent: list[Settling] = []
        self.found: list[Doubtful] = []
        for name, capacity in WORKERS.items():
            self.do(self.world.worker(name, capacity=capacity))
            self.model.capacity[name] = capacity
            self.model.orders[name] = WorkerOrder.WORK

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run what the store does."""
        return self.runner.run(work)

    def end(self) -> None:
        """Let go of the store."""
        self.do(self.world.store.close())
        self.runner.close()
        self.plug.leave(self.folder)
        shutil.rmtree(self.folder)

    # Submitting

    def spec(self, choose: Choose) -> dict[str, Any]:
        """What a task asks for."""
        given: dict[str, Any] = {
            "priority": choose((4, 4, 9)),
            "max_attempts": choose((1, 2, 3)),
            "max_losses": choose((1, 2, 3)),
            "on_loss": choose(("retry", "retry", "count", "fail")),
            "lease": choose((10, 60)),
            "execution_limit": choose((30, 90, 1000)),
        }
        for name, values in (("delay", (5, 40)), ("ttl", (20, 70)), ("timeout", (5, 5))):
            value = choose((None, None, None, None, None, *values))
            if value is not None:
                given[name] = value
        return given

    def submit(self, choose: Choose) -> None:
        """Some tasks in one call."""
        tasks = [self.world.task(**self.spec(choose)) for _ in range(choose((1, 2, 3)))]
        answers = self.do(self.world.submit_all(tasks))
        self.model.step += 1
        for task, answer in zip(tasks, answers, strict=True):
            assert answer == Submitted(task.id, self.model.submit(task).state, False)

    def submit_with_a_key(self, choose: Choose) -> None:
        """A key that may be known, with a request that may be another."""
        key, request_hash = choose("ab"), choose("xxy")
        task = self.world.task(idempotency_key=key, request_hash=request_hash)
        (answer,) = self.do(self.world.submit_all([task]))
        known = self.model.keys.get(key)
        if known is None:
            self.model.keys[key] = (task.id, request_hash)
            self.model.step += 1
            assert answer == Submitted(task.id, self.model.submit(task).state, False)
        elif known[1] == request_hash:
            assert answer == Submitted(known[0], self.model.tasks[known[0]].state, True)
        else:
            assert isinstance(answer, IdempotencyConflict)

    def submit_job(self, choose: Choose) -> None:
        """A small DAG with all sorts of triggers and edges."""
        graph: dict[str, list[str]] = {}
        edges: dict[tuple[str, str], str] = {}
        tasks: dict[str, dict[str, Any]] = {}
        for n in range(choose((1, 2, 3, 4, 5, 6))):
            name = f"t{n}"
            above = sorted({choose(list(graph)) for _ in range(choose((0, 1, 2, 3)))}) if graph else []
            graph[name] = above
            tasks[name] = {**self.spec(choose), "trigger": choose(TRIGGERS) if above else TRIGGERS[0]}
            for parent in above:
                said = choose((None, "fail", "continue"))
                if said is not None:
                    edges[parent, name] = said
        policy: Any = choose(POLICIES)
        job = self.world.job(graph, policy=policy, edges=edges, tasks=tasks)
        (answer,) = self.do(self.world.ledger.submit_jobs([job]))
        assert not isinstance(answer, PerdureError)
        self.model.submit_job(job)

    # Time and duties

    def advance(self, choose: Choose) -> None:
        """Time passes."""
        self.pass_time(choose((1, 5, 10, 30, 60, 200)))

    def pass_time(self, seconds: int) -> None:
        """That much time passes."""
        self.world.advance(seconds)
        self.model.now_us += us(seconds)

    def run_a_duty(self, choose: Choose) -> None:
        """One of the duties that need no decision."""
        match choose(("promote", "expire", "expire", "cascade", "cascade")):
            case "cascade":
                self.do(self.world.cascade())
                self.model.cascade()
            case "expire":
                assert self.do(self.world.ledger.expire(1000)).moved == self.model.expire()
            case _:
                assert self.do(self.world.ledger.promote(1000)).moved == self.model.promote()

    def find(self, choose: Choose) -> None:
        """A duty looks for attempts to end, and may be slow to end them."""
        self.found = self.do(self.world.ledger.find_doubtful(1000))
        assert {(each.hold.attempt_id, each.guard) for each in self.found} == self.model.doubtful()

    def settle_what_was_found(self, choose: Choose) -> None:
        """The duty goes on, whatever happened since."""
        charged = choose((True, True, False))
        self.send([doubt_settled(each, FIXED, charged) for each in self.found])
        self.found = []

    def lose(self, choose: Choose) -> None:
        """Leases run out and the duty is quick."""
        self.pass_time(choose((10, 60)))
        self.find(choose)
        self.settle_what_was_found(choose)

    def overdue(self, choose: Choose) -> None:
        """Nothing happens for a while, then what waited too long ends."""
        self.pass_time(choose((20, 70, 200)))
        assert self.do(self.world.ledger.expire(1000)).moved == self.model.expire()

    # Workers

    def _hold(self, choose: Choose) -> Hold:
        """Mostly an attempt that lives, else any of the latest."""
        live = [task.attempt.hold for task in self.model.held() if task.attempt]
        return choose(live) if live and choose((True, True, False)) else choose(self.holds[-RECENT:])

    def claim(self, choose: Choose) -> None:
        """A worker asks for work."""
        self.claim_for(choose(list(WORKERS)), choose((1, 2, 3, 4)))

    def claim_for(self, worker: str, count: int) -> list[Hold]:
        """That worker asks for that much."""
        request = ClaimRequest(worker, self.world.leases(count))
        leases = self.do(self.world.ledger.claim(request))
        self.claims.append(request)
        self.model.promote()
        self.model.expire()
        ready = self.model.claimable()
        assert len(leases) == min(count, self.model.room(worker), len(ready))
        order = sorted(ready, key=_place)
        for lease, expected in zip(leases, order, strict=False):
            task = self.model.tasks[lease.hold.task_id]
            assert _place(task) == _place(expected)
            assert (lease.attempt, lease.generation) == (task.failures + 1, task.generation)
            self.model.lease(lease.hold.task_id, lease.hold, worker, lease.fence)
            self.holds.append(lease.hold)
        return [lease.hold for lease in leases]

    def claim_again(self, choose: Choose) -> None:
        """A claim whose answer was lost is sent again: what still lives of it comes back."""
        if not self.claims:
            return
        request = choose(self.claims[-RECENT:])
        asked = {attempt for attempt, _ in request.leases}
        still = {
            task.attempt.hold.attempt_id
            for task in self.model.held()
            if task.attempt and task.attempt.hold.attempt_id in asked
        }
        if still and self.model.orders[request.worker_id] is WorkerOrder.WORK:
            leases = self.do(self.world.ledger.claim(request))
            self.model.promote()
            self.model.expire()
            got = {lease.hold.attempt_id for lease in leases}
            assert got <= still

    def work(self, choose: Choose) -> None:
        """Claim, wait a little, settle in one call."""
        holds = self.claim_for("w", choose((1, 2, 3, 4, 5, 6)))
        if choose((True, False)):
            for hold in holds:
                self.renew_for(hold, True)
        self.pass_time(choose((0, 0, 3, 8)))
        self.settle_for(holds, choose)

    def renew(self, choose: Choose) -> None:
        """A holder, or one that was, renews."""
        if self.holds:
            self.renew_for(self._hold(choose), choose((True, False)))

    def renew_for(self, hold: Hold, started: bool) -> None:
        """That attempt renews."""
        answer = self.do(self.world.renew(hold, started))
        assert (answer is not None) == self.model.renew(hold, started)

    def report(self, choose: Choose) -> None:
        """A holder, or one that was, reports."""
        if self.holds:
            hold = self._hold(choose)
            answer = self.do(self.world.report(hold, progress=Progress(1)))
            assert (not isinstance(answer, PerdureError)) == self.model.report(hold)

    def send(self, settlings: list[Settling]) -> None:
        """One settle call."""
        answers = self.do(self.world.ledger.settle(settlings))
        self.model.step += 1
        for each, answer in zip(settlings, answers, strict=True):
            assert answer[:2] == self.model.settle(each.hold, each.guard, each.settlement, each.digest)
        self.sent += settlings

    def settle(self, choose: Choose) -> None:
        """A holder, or one that was, ends as the engine lets it end."""
        if self.holds:
            self.settle_for([self._hold(choose)], choose)

    def settle_for(self, holds: list[Hold], choose: Choose) -> None:
        """Those attempts end: facts, decision, write."""
        known = self.do(self.world.ledger.facts(holds)) if holds else []
        settlings = []
        for hold, facts in zip(holds, known, strict=True):
            outcome = choose(OUTCOMES)
            if facts is not None:
                name = f"d{len(self.sent)}-{hold.attempt_id[-12:]}"
                settlings.append(Settling(hold, Guard.HOLDER, settle(outcome, facts, FIXED, 0.0), name))
        self.send(settlings)

    def settle_blindly(self, choose: Choose) -> None:
        """A settlement that looked at nothing first."""
        if self.holds:
            hold = self._hold(choose)
            self.send([Settling(hold, Guard.HOLDER, choose(BLIND), f"d{len(self.sent)}")])

    def settle_all_at_once(self, choose: Choose) -> None:
        """Everything that is held ends in one call."""
        settlement = choose((DONE, PARTLY_DONE))
        held = [task.attempt.hold for task in self.model.held() if task.attempt]
        self.send([Settling(hold, Guard.HOLDER, settlement, f"a{len(self.sent)}-{n}") for n, hold in enumerate(held)])

    def send_again(self, choose: Choose) -> None:
        """A settle whose answer was lost is sent again."""
        if self.sent:
            self.send([choose(self.sent[-RECENT:])])

    def write_a_receipt(self, choose: Choose) -> None:
        """A handler commits its effects together with its result."""
        if not self.holds or self.plug.connect is None:
            return
        hold, partly = self._hold(choose), choose((False, True))
        task = self.model.tasks[hold.task_id]
        if task.attempt is not None and task.attempt.hold == hold and task.attempt.receipt is not None:
            return
        assert self.model.receipt(hold, partly) == self._settled_within(self.plug.connect, hold, partly)

    def _settled_within(self, connect: Callable[[Path], Any], hold: Hold, partly: bool) -> bool:
        connection = connect(self.folder)
        connection.execute(self.plug.begin)
        try:
            caller: Any = self.world.store.caller  # type: ignore[attr-defined]
            caller.settle(connection, hold, Receipt(hold.attempt_id, partly, RESULT, None))
        except LeaseLost:
            connection.execute("ROLLBACK")
            return False
        else:
            connection.execute("COMMIT")
            return True
        finally:
            connection.close()

    # Operators

    def _some_task(self, choose: Choose) -> str | None:
        return choose(list(self.model.tasks)[-RECENT:]) if self.model.tasks else None

    def cancel(self, choose: Choose) -> None:
        """Somebody cancels a task."""
        task_id = self._hold(choose).task_id if self.holds and choose((True, False)) else self._some_task(choose)
        if task_id is not None:
            grace = us(choose((5, 30)))
            answer = self.do(self.world.cancel(task_id, grace_us=grace))
            assert answer.answer is self.model.cancel(task_id, grace)
            assert answer.state is self.model.tasks[task_id].state

    def cancel_job(self, choose: Choose) -> None:
        """Somebody cancels a job."""
        if self.model.jobs:
            job_id = choose(list(self.model.jobs)[-RECENT:])
            answer = self.do(self.world.ledger.cancel_job(ORGANIZATION, job_id, "bob", None))
            assert answer == self.model.cancel_job(job_id)

    def redrive(self, choose: Choose) -> None:
        """Somebody runs a task again, mostly one that can be."""
        dead = [each for each, task in self.model.tasks.items() if task.state.value in ("failed", "dead_lettered")]
        task_id = choose(dead[-RECENT:]) if dead else self._some_task(choose)
        if task_id is not None:
            answer = self.do(self.world.redrive(task_id))
            expected = self.model.redrive(task_id)
            assert isinstance(answer, PerdureError) if expected is None else answer is expected

    def postpone(self, choose: Choose) -> None:
        """Somebody gives a task another time."""
        task_id = self._some_task(choose)
        if task_id is not None:
            run_at_us = self.model.now_us + us(choose((3, 30)))
            answer = self.do(self.world.ledger.postpone(ORGANIZATION, task_id, run_at_us))
            assert answer == self.model.postpone(task_id, run_at_us)

    def trouble(self, choose: Choose) -> None:
        """Operators pause, drain and revoke; time becomes doubtful; mostly all is put right again."""
        match choose(("suspend", "pause", "order", "order", "letters", "resume", "resume", "resume", "resume")):
            case "suspend":
                until = self.model.now_us + us(60)
                self.do(self.world.ledger.suspend_losses(until))
                self.model.suspended_us = max(self.model.suspended_us, until)
            case "pause":
                self._policy(not self.model.paused, self.model.dead_letters)
            case "letters":
                self._policy(self.model.paused, not self.model.dead_letters)
            case "order":
                self._order(choose(list(WORKERS)), choose(list(WorkerOrder)))
            case _:
                self._policy(False, True)
                for worker in WORKERS:
                    self._order(worker, WorkerOrder.WORK)

    def _order(self, worker: str, order: WorkerOrder) -> None:
        self.do(self.world.ledger.order(ORGANIZATION, worker, order, "bob"))
        self.model.orders[worker] = order

    def _policy(self, paused: bool, dead_letters: bool) -> None:
        self.model.paused, self.model.dead_letters = paused, dead_letters
        document = json.dumps({"paused": paused, "dead_letters": dead_letters})
        self.do(self.world.definitions.put(ORGANIZATION, "queue", "default", document, "bob"))

    def revoke(self, choose: Choose) -> None:
        """A worker is put out, its attempts are ended, and it may come back."""
        worker = choose(list(WORKERS))
        self._order(worker, WorkerOrder.REVOKE)
        self.find(choose)
        if choose((True, True, False)):
            self.settle_what_was_found(choose)
        if choose((True, True, False)):
            self._order(worker, WorkerOrder.WORK)

    # What must hold after every step

    def check(self) -> None:
        """Tasks and jobs are as in the model, and no row contradicts another."""
        self._check_tasks()
        self._check_jobs()
        contradictions = self.plug.contradictions(self.folder)
        assert not contradictions, contradictions

    def _check_tasks(self) -> None:
        page = self.do(self.world.views.tasks(ORGANIZATION, TaskFilter(), 1000))
        assert {row.id for row in page.rows} == self.model.tasks.keys()
        for row in page.rows:
            task = self.model.tasks[row.id]
            real = (row.state, row.reason, row.generation, row.losses, row.lease_expires_us, row.deadline_us)
            lease = task.attempt.ends_us if task.attempt else None
            modelled = (task.state, task.reason, task.generation, task.losses, lease, task.deadline_us)
            assert real == modelled, f"{row.id} is {real}, not {modelled}"

    def _check_jobs(self) -> None:
        page = self.do(self.world.views.jobs(ORGANIZATION, list(JobState), 1000))
        real = {row.id: (row.state, row.open) for row in page.rows}
        jobs = self.model.jobs.values()
        modelled = {job.id: (self.model.job_state(job), self.model.open(job)) for job in jobs}
        assert real == modelled, f"jobs are {real}, not {modelled}"


def _place(task: MTask) -> tuple[int, tuple[int, int]]:
    return -task.spec.terms.priority, task.rank


VERBS: dict[str, int] = {
    "submit": 3,
    "submit_with_a_key": 1,
    "submit_job": 2,
    "advance": 3,
    "run_a_duty": 3,
    "find": 1,
    "settle_what_was_found": 1,
    "lose": 2,
    "overdue": 1,
    "claim": 4,
    "claim_again": 1,
    "work": 6,
    "renew": 3,
    "report": 1,
    "settle": 4,
    "settle_blindly": 1,
    "settle_all_at_once": 1,
    "send_again": 1,
    "write_a_receipt": 1,
    "cancel": 2,
    "cancel_job": 1,
    "redrive": 3,
    "postpone": 1,
    "trouble": 2,
    "revoke": 1,
}
"""The verbs, with how often each one is chosen among them."""

WEIGHTED = [verb for verb, weight in VERBS.items() for _ in range(weight)]
