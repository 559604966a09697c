"""Random lives: whatever is done in whatever order, each store does what the model does, and its rows agree."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from conformance.making import BOOM, DONE, FIXED, ORGANIZATION, PARTLY_DONE, RESULT, World, doubt_settled, us
from conformance.model import Model
from conformance.stores import STORES, ManualClock
from perdure.domain.attempt import Hold, Progress
from perdure.domain.outcome import Failed, GaveUp, HandedBack, Snoozed, Stopped, Succeeded, SucceededPartly
from perdure.domain.settlement import Receipt, Settlement, settle
from perdure.domain.states import JobState
from perdure.errors import IdempotencyConflict, LeaseLost, PerdureError
from perdure.store.ledger import Doubtful, Guard, Settling, Submitted, WorkerOrder
from perdure.store.views import TaskFilter

T = TypeVar("T")
WORKERS = {"w": 100, "v": 2}
OUTCOMES = (
    Succeeded(RESULT),
    SucceededPartly(RESULT),
    Failed(BOOM),
    Failed(BOOM, permanent=True),
    Failed(BOOM, retry_after_us=us(3)),
    Snoozed(us(7)),
    GaveUp("why"),
    HandedBack(),
    Stopped(),
)
BLIND = (DONE, PARTLY_DONE, Settlement.handed_back(), Settlement.acknowledged(), Settlement.expired_unstarted())
"""Settlements that are sent without looking."""

chance = st.integers(0, 10**6)
specs = st.fixed_dictionaries(
    {
        "priority": st.sampled_from((4, 4, 9)),
        "max_attempts": st.integers(1, 3),
        "max_losses": st.integers(1, 3),
        "on_loss": st.sampled_from(("retry", "retry", "count", "fail")),
        "lease": st.sampled_from((10, 60)),
        "execution_limit": st.sampled_from((90, 1000)),
    },
    optional={
        "delay": st.sampled_from((5, 40)),
        "ttl": st.sampled_from((20, 70)),
        "timeout": st.just(5),
    },
)
TRIGGERS = ("all_succeeded", "all_succeeded", "all_done", "any_succeeded", "any_failed")
POLICIES = ("fail", "fail", "continue", "cancel_job")


TROUBLES = ("suspend", "pause", "resume", "resume", "resume")


class Lives(RuleBasedStateMachine):
    """One store beside its model."""

    store_name: ClassVar[str]

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.folder = Path(tempfile.mkdtemp(prefix="perdure-lives-"))
        self.clock = ManualClock()
        plug = STORES[self.store_name]
        store = self.do(plug.open(self.folder, self.clock))
        self.world = World(store, self.clock, plug, self.folder)
        self.model = Model(self.do(self.world.now_us()))
        self.known: list[Hold] = []
        self.sent: list[Settling] = []
        self.found: list[Doubtful] = []

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.do(self.world.store.close())
        self.runner.close()
        shutil.rmtree(self.folder)

    def pick(self, things: list[T], number: int) -> T:
        return things[-1 - number % min(len(things), 12)]

    @initialize()
    def register(self) -> None:
        for name, capacity in WORKERS.items():
            self.do(self.world.worker(name, capacity=capacity))
            self.model.capacity[name] = capacity
            self.model.orders[name] = WorkerOrder.WORK

    # Submitting

    @rule(given=st.lists(specs, min_size=1, max_size=3))
    def submit(self, given: list[dict[str, Any]]) -> None:
        tasks = [self.world.task(**each) for each in given]
        answers = self.do(self.world.submit_all(tasks))
        for task, answer in zip(tasks, answers, strict=True):
            made = self.model.submit(task)
            assert answer == Submitted(task.id, made.state, False)

    @rule(key=st.sampled_from("ab"), request_hash=st.sampled_from("xy"))
    def submit_with_a_key(self, key: str, request_hash: str) -> None:
        task = self.world.task(idempotency_key=key, request_hash=request_hash)
        (answer,) = self.do(self.world.submit_all([task]))
        known = self.model.keys.get(key)
        if known is None:
            self.model.keys[key] = (task.id, request_hash)
            assert answer == Submitted(task.id, self.model.submit(task).state, False)
        elif known[1] == request_hash:
            assert answer == Submitted(known[0], self.model.tasks[known[0]].state, True)
        else:
            assert isinstance(answer, IdempotencyConflict)

    @rule(data=st.data(), size=st.integers(1, 6), policy=st.sampled_from(POLICIES))
    def submit_job(self, data: st.DataObject, size: int, policy: Any) -> None:
        graph: dict[str, list[str]] = {}
        edges: dict[tuple[str, str], str] = {}
        tasks: dict[str, dict[str, Any]] = {}
        for n in range(size):
            above = sorted(data.draw(st.sets(st.sampled_from(sorted(graph)), max_size=3))) if graph else []
            graph[f"t{n}"] = above
            tasks[f"t{n}"] = {
                **data.draw(specs),
                "trigger": data.draw(st.sampled_from(TRIGGERS if above else TRIGGERS[:1])),
            }
            for parent in above:
                said = data.draw(st.sampled_from((None, "fail", "continue")))
                if said is not None:
                    edges[parent, f"t{n}"] = said
        job = self.world.job(graph, policy=policy, edges=edges, tasks=tasks)
        (answer,) = self.do(self.world.ledger.submit_jobs([job]))
        assert not isinstance(answer, PerdureError)
        self.model.submit_job(job)

    # Time and duties

    @rule(seconds=st.sampled_from((1, 5, 10, 30, 60, 200)))
    def advance(self, seconds: int) -> None:
        self.world.advance(seconds)
        self.model.now_us += us(seconds)

    @rule(duty=st.sampled_from(("promote", "expire", "cascade", "cascade")))
    def run_a_duty(self, duty: str) -> None:
        if duty == "cascade":
            self.do(self.world.cascade())
            self.model.cascade()
        elif duty == "expire":
            assert self.do(self.world.ledger.expire(1000)).moved == self.model.expire()
        else:
            assert self.do(self.world.ledger.promote(1000)).moved == self.model.promote()

    @rule()
    def find(self) -> None:
        self.found = self.do(self.world.ledger.find_doubtful(1000))
        assert {(each.hold.attempt_id, each.guard) for each in self.found} == self.model.doubtful()

    @precondition(lambda self: self.found)
    @rule(charged=st.booleans())
    def settle_what_was_found(self, charged: bool) -> None:
        self.send([doubt_settled(each, FIXED, charged) for each in self.found])
        self.found = []

    @rule(seconds=st.sampled_from((10, 60)), charged=st.booleans())
    def lose(self, seconds: int, charged: bool) -> None:
        self.advance(seconds)
        self.find()
        self.settle_what_was_found(charged)

    # Workers

    @rule(worker=st.sampled_from(sorted(WORKERS)), count=st.integers(1, 4))
    def claim(self, worker: str, count: int) -> None:
        leases = self.do(self.world.claim(count, worker))
        self.model.promote()
        self.model.expire()
        ready = self.model.claimable()
        assert len(leases) == min(count, self.model.room(worker), len(ready))
        order = sorted(ready, key=lambda task: (-task.spec.priority, task.rank))
        for lease, expected in zip(leases, order, strict=False):
            task = self.model.tasks[lease.hold.task_id]
            assert (task.spec.priority, task.rank) == (expected.spec.priority, expected.rank)
            assert lease.attempt == task.failures + 1
            assert lease.generation == task.generation
            self.model.lease(lease.hold.task_id, lease.hold, worker, lease.fence)
            self.known.append(lease.hold)

    @precondition(lambda self: self.model.claimable())
    @rule(outcomes=st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=6), seconds=st.sampled_from((0, 3, 8)))
    def work(self, outcomes: list[Any], seconds: int) -> None:
        """Claim, wait a little, settle in one call."""
        before = len(self.known)
        self.claim("w", len(outcomes))
        self.advance(seconds)
        self.settle_many(self.known[before:], outcomes)

    @precondition(lambda self: self.known)
    @rule(number=chance, started=st.booleans())
    def renew(self, number: int, started: bool) -> None:
        hold = self.pick(self.known, number)
        answer = self.do(self.world.renew(hold, started))
        assert (answer is not None) == self.model.renew(hold, started)

    @precondition(lambda self: self.known)
    @rule(number=chance)
    def report(self, number: int) -> None:
        hold = self.pick(self.known, number)
        answer = self.do(self.world.report(hold, progress=Progress(number)))
        assert (not isinstance(answer, PerdureError)) == self.model.report(hold)

    def send(self, settlings: list[Settling]) -> None:
        answers = self.do(self.world.ledger.settle(settlings))
        self.model.step += 1
        for each, answer in zip(settlings, answers, strict=True):
            assert tuple(answer) == self.model.settle(each.hold, each.guard, each.settlement, each.digest)
        self.sent += settlings

    @precondition(lambda self: self.known)
    @rule(number=chance, outcome=st.sampled_from(OUTCOMES))
    def settle(self, number: int, outcome: Any) -> None:
        self.settle_many([self.pick(self.known, number)], [outcome])

    def settle_many(self, holds: list[Hold], outcomes: list[Any]) -> None:
        known = self.do(self.world.ledger.facts(holds))
        self.send(
            [
                Settling(hold, Guard.HOLDER, settle(outcome, facts, FIXED, 0.0), f"d{len(self.sent)}-{hold.attempt_id}")
                for hold, facts, outcome in zip(holds, known, outcomes, strict=False)
                if facts is not None
            ]
        )

    @precondition(lambda self: self.known)
    @rule(number=chance, settlement=st.sampled_from(BLIND))
    def settle_blindly(self, number: int, settlement: Settlement) -> None:
        self.send([Settling(self.pick(self.known, number), Guard.HOLDER, settlement, f"d{len(self.sent)}")])

    @precondition(lambda self: self.model.held())
    @rule(partly=st.booleans())
    def settle_all_at_once(self, partly: bool) -> None:
        settlement = PARTLY_DONE if partly else DONE
        held = [task.attempt.hold for task in self.model.held() if task.attempt]
        self.send([Settling(hold, Guard.HOLDER, settlement, f"a{len(self.sent)}-{n}") for n, hold in enumerate(held)])

    @precondition(lambda self: self.sent)
    @rule(number=chance)
    def send_again(self, number: int) -> None:
        self.send([self.pick(self.sent, number)])

    @precondition(lambda self: self.known and STORES[self.store_name].connect)
    @rule(number=chance, partly=st.booleans())
    def write_a_receipt(self, number: int, partly: bool) -> None:
        hold = self.pick(self.known, number)
        task = self.model.tasks[hold.task_id]
        if task.attempt is not None and task.attempt.hold == hold and task.attempt.receipt is not None:
            return
        assert self.model.receipt(hold, partly) == self.settled_within(hold, partly)

    def settled_within(self, hold: Hold, partly: bool) -> bool:
        connect = STORES[self.store_name].connect
        assert connect is not None
        connection = connect(self.folder)
        connection.execute("BEGIN IMMEDIATE")
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

    @precondition(lambda self: self.model.tasks)
    @rule(number=chance, grace=st.sampled_from((5, 30)))
    def cancel(self, number: int, grace: int) -> None:
        task_id = self.pick(list(self.model.tasks), number)
        answer = self.do(self.world.cancel(task_id, grace_us=us(grace)))
        assert answer.answer is self.model.cancel(task_id, us(grace))
        assert answer.state is self.model.tasks[task_id].state

    @precondition(lambda self: self.model.jobs)
    @rule(number=chance)
    def cancel_job(self, number: int) -> None:
        job_id = self.pick(list(self.model.jobs), number)
        answer = self.do(self.world.ledger.cancel_job(ORGANIZATION, job_id, "bob", None))
        assert answer == self.model.cancel_job(job_id)

    @precondition(lambda self: self.model.tasks)
    @rule(number=chance)
    def redrive(self, number: int) -> None:
        dead = [each for each, task in self.model.tasks.items() if task.state.value in ("failed", "dead_lettered")]
        task_id = self.pick(dead or list(self.model.tasks), number)
        answer = self.do(self.world.redrive(task_id))
        expected = self.model.redrive(task_id)
        assert isinstance(answer, PerdureError) if expected is None else answer is expected

    @rule(what=st.sampled_from((*TROUBLES, *TROUBLES, *WorkerOrder)), worker=st.sampled_from(sorted(WORKERS)))
    def trouble(self, what: str, worker: str) -> None:
        if what == "suspend":
            until = self.model.now_us + us(60)
            self.do(self.world.ledger.suspend_losses(until))
            self.model.suspended_us = max(self.model.suspended_us, until)
        elif what == "pause":
            self.pause(not self.model.paused)
        elif what == "resume":
            self.pause(False)
            for each in WORKERS:
                self.order(each, WorkerOrder.WORK)
        else:
            self.order(worker, WorkerOrder(what))

    def order(self, worker: str, order: WorkerOrder) -> None:
        self.do(self.world.ledger.order(worker, order, "bob"))
        self.model.orders[worker] = order

    def pause(self, paused: bool) -> None:
        self.model.paused = paused
        document = '{"paused":true}' if paused else '{"paused":false}'
        self.do(self.world.definitions.put(ORGANIZATION, "queue", "default", document, "bob"))

    # What must hold after every step

    @invariant()
    def holds(self) -> None:
        self.check_tasks()
        self.check_jobs()
        contradictions = STORES[self.store_name].contradictions(self.folder)
        assert not contradictions, contradictions

    def check_tasks(self) -> None:
        page = self.do(self.world.views.tasks(ORGANIZATION, TaskFilter(), 1000))
        assert {row.id for row in page.rows} == self.model.tasks.keys()
        for row in page.rows:
            task = self.model.tasks[row.id]
            real = (row.state, row.reason, row.generation, row.losses, row.lease_expires_us, row.deadline_us)
            lease = task.attempt.ends_us if task.attempt else None
            modelled = (task.state, task.reason, task.generation, task.losses, lease, task.deadline_us)
            assert real == modelled, f"{row.id} is {real}, not {modelled}"

    def check_jobs(self) -> None:
        page = self.do(self.world.views.jobs(ORGANIZATION, list(JobState), 1000))
        real = {row.id: (row.state, row.open) for row in page.rows}
        jobs = self.model.jobs.values()
        assert real == {job.id: (self.model.job_state(job), self.model.open(job)) for job in jobs}


def run_lives(store: str, examples: int, steps: int) -> None:
    """Run that many random lives against a store."""
    from hypothesis.stateful import run_state_machine_as_test

    machine = type(f"Lives_{store}", (Lives,), {"store_name": store})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            print_blob=True,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
        ),
    )


@pytest.mark.timeout(300)
@pytest.mark.parametrize("store", sorted(STORES))
def test_random_lives_are_as_in_the_model(store: str) -> None:
    run_lives(store, int(os.environ.get("PERDURE_TEST_LIVES", "40")), 40)


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("store", sorted(STORES))
def test_many_long_random_lives_are_as_in_the_model(store: str) -> None:
    run_lives(store, 1_000, 80)
