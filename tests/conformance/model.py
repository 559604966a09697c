"""A simple picture of what a store must do, in plain Python: the specification that the random lives are held to.

Instants are microseconds of the store's clock. What is decided purely (settlements) is not modelled again: the model
takes the settlement and says what becomes of it.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from conformance.model_rows import FALLEN, MAttempt, MJob, MTask
from perdure.domain import limits
from perdure.domain.attempt import Hold
from perdure.domain.settlement import Charge, Settlement
from perdure.domain.states import BAD_ENDS, ENDED, GOOD_ENDS, HELD, WAITING, JobState, Reason, TaskState
from perdure.domain.task import Task
from perdure.domain.transitions import Event, targets
from perdure.store.ledger import CancelAnswer, Guard, SettleAnswer, WorkerOrder

S = TaskState


@dataclass
class Model:
    """The whole store."""

    now_us: int
    tasks: dict[str, MTask] = field(default_factory=dict)
    jobs: dict[str, MJob] = field(default_factory=dict)
    frontier: list[str] = field(default_factory=list)
    ended: dict[str, tuple[str, TaskState]] = field(default_factory=dict)
    """Digest and the task's state by the id of an ended attempt."""
    orders: dict[str, WorkerOrder] = field(default_factory=dict)
    capacity: dict[str, int] = field(default_factory=dict)
    paused: bool = False
    dead_letters: bool = True
    suspended_us: int = 0
    step: int = 0
    keys: dict[str, tuple[str, str]] = field(default_factory=dict)
    reached: Counter[tuple[TaskState | None, Event]] = field(default_factory=Counter)
    """How often each move of the lifecycle was made."""

    # Submitting

    def submit(self, spec: Task) -> MTask:
        """A task without parents is queued when it is due."""
        task = self._add(spec)
        self._join(task)
        return task

    def _add(self, spec: Task) -> MTask:
        due = self.now_us + (spec.rare.delay_us or 0)
        expires = None if spec.terms.ttl_us is None else self.now_us + spec.terms.ttl_us
        task = self.tasks[spec.id] = MTask(spec, self.now_us, due, expires)
        self.reached[None, Event.SUBMIT] += 1
        return task

    def submit_job(self, job: Any) -> None:
        """All tasks at once; those without parents start as if they were alone."""
        self.step += 1
        made = self.jobs[job.id] = MJob(job.id, [each.id for each in job.tasks])
        for spec in job.tasks:
            self._add(spec).job = made
        for edge in job.edges:
            self.tasks[edge.child].parents[edge.parent] = edge.policy
            self.tasks[edge.child].counted[edge.parent] = "open"
            self.tasks[edge.parent].children.append(edge.child)
        for spec in job.tasks:
            if not self.tasks[spec.id].parents:
                self._join(self.tasks[spec.id])

    def _join(self, task: MTask) -> None:
        task.met = True
        if task.due_us <= self.now_us:
            self.reached[task.state, Event.PROMOTE] += 1
            task.state = S.QUEUED
            task.rank = (1, self.step)

    # Time

    def due(self) -> list[MTask]:
        """What promotion moves."""
        return [
            task
            for task in self.tasks.values()
            if task.state in (S.PENDING, S.RETRYING) and not task.blocked and task.due_us <= self.now_us
        ]

    def promote(self) -> int:
        """Due tasks join the line."""
        self.step += 1
        moving = self.due()
        for task in moving:
            self._join(task)
        return len(moving)

    def overdue(self) -> list[tuple[MTask, TaskState, Reason]]:
        """What expiry ends, and how."""
        found = []
        for task in self.tasks.values():
            if task.state not in WAITING:
                continue
            if task.expires_us is not None and task.expires_us <= self.now_us:
                found.append((task, S.EXPIRED, Reason.TTL))
            elif task.deadline_us is not None and task.deadline_us <= self.now_us:
                found.append((task, S.DEAD_LETTERED if self.dead_letters else S.FAILED, Reason.DEADLINE))
        return found

    def expire(self) -> int:
        """Waiting tasks past their TTL end, then those past their deadline that are still waiting."""
        self.step += 1
        moved = 0
        for reason in (Reason.TTL, Reason.DEADLINE):
            ending = [each for each in self.overdue() if each[2] is reason]
            self._end_all(ending)
            moved += len(ending)
        return moved

    def postpone(self, task_id: str, run_at_us: int) -> bool:
        """Whether the task waits for its new time now."""
        task = self.tasks[task_id]
        if task.state not in (S.PENDING, S.QUEUED) or task.blocked:
            return False
        self.reached[task.state, Event.POSTPONE] += 1
        task.state, task.due_us = S.PENDING, run_at_us
        return True

    # Claiming

    def claimable(self) -> list[MTask]:
        """What a claim may give now, once promotion and expiry are done."""
        return [] if self.paused else [task for task in self.tasks.values() if task.state is S.QUEUED]

    def room(self, worker: str) -> int:
        """How many leases the worker may still get."""
        if self.orders[worker] is not WorkerOrder.WORK:
            return 0
        held = sum(1 for task in self.tasks.values() if task.attempt and task.attempt.worker == worker)
        return max(0, self.capacity[worker] - held)

    def lease(self, task_id: str, hold: Hold, worker: str, fence: int) -> None:
        """One task of a claim's answer."""
        task = self.tasks[task_id]
        assert task.state is S.QUEUED
        assert fence == max(task.fence + 1, self.now_us)
        if task.deadline_us is None:
            task.deadline_us = self.now_us + task.spec.terms.execution_limit_us
        self.reached[S.QUEUED, Event.CLAIM] += 1
        task.state, task.fence = S.LEASED, fence
        ends = min(self.now_us + task.spec.terms.lease_us, task.deadline_us)
        task.attempt = MAttempt(hold, worker, ends, fence)
        if task.job:
            task.job.started = True

    # The holder

    def live(self, hold: Hold) -> MTask | None:
        """The task whose live attempt this is, as far as it may write."""
        task = self.tasks.get(hold.task_id)
        if task is None or task.attempt is None or task.attempt.hold != hold:
            return None
        if task.attempt.ends_us <= self.now_us or self.orders[task.attempt.worker] is WorkerOrder.REVOKE:
            return None
        return task

    def renew(self, hold: Hold, started: bool) -> bool:
        """Whether the lease was extended."""
        task = self.live(hold)
        if task is None or task.attempt is None or task.deadline_us is None:
            return False
        if task.cancel_ends_us is not None and task.cancel_ends_us <= self.now_us:
            return False
        task.attempt.ends_us = min(
            self.now_us + task.spec.terms.lease_us, task.deadline_us, task.cancel_ends_us or task.deadline_us
        )
        if started:
            self._start(task)
        return True

    def report(self, hold: Hold) -> bool:
        """Whether a report was taken."""
        task = self.live(hold)
        if task is None or task.state is S.CANCELLING:
            return False
        self._start(task)
        return True

    def _start(self, task: MTask) -> None:
        if task.state is S.LEASED and task.attempt is not None:
            self.reached[S.LEASED, Event.START] += 1
            task.state = S.RUNNING
            task.attempt.started_us = self.now_us

    def receipt(self, hold: Hold, partly: bool) -> bool:
        """Whether a receipt was taken."""
        task = self.live(hold)
        if task is None or task.state is S.CANCELLING or task.attempt is None:
            return False
        task.attempt.receipt = partly
        return True

    # Ending attempts

    def guard_of(self, task: MTask) -> Guard | None:
        """Why a duty may end the live attempt, if it may."""
        attempt, now = task.attempt, self.now_us
        assert attempt is not None
        assert task.deadline_us is not None
        if task.cancel_ends_us is not None and task.cancel_ends_us <= now:
            return Guard.CANCEL_OVER
        if task.deadline_us <= now:
            return Guard.DEADLINE_OVER
        if attempt.ends_us <= now and (task.state is S.CANCELLING or now >= self.suspended_us):
            return Guard.LEASE_OVER
        if self._timed_out(task):
            return Guard.TIMEOUT_OVER
        if self.orders[attempt.worker] is WorkerOrder.REVOKE:
            return Guard.WORKER_REVOKED
        return None

    def _timed_out(self, task: MTask) -> bool:
        attempt, timeout = task.attempt, task.spec.terms.timeout_us
        if task.state is not S.RUNNING or attempt is None or attempt.started_us is None or timeout is None:
            return False
        return attempt.started_us + timeout + limits.TIMEOUT_GRACE_US <= self.now_us

    def doubtful(self) -> set[tuple[str, Guard]]:
        """What a duty finds."""
        found = set()
        for task in self.tasks.values():
            guard = self.guard_of(task) if task.attempt else None
            if guard is not None and task.attempt is not None:
                found.add((task.attempt.hold.attempt_id, guard))
        return found

    def _guard_holds(self, hold: Hold, guard: Guard) -> MTask | None:
        if guard is Guard.HOLDER:
            return self.live(hold)
        task = self.tasks.get(hold.task_id)
        if task is None or task.attempt is None or task.attempt.hold.attempt_id != hold.attempt_id:
            return None
        assert task.deadline_us is not None
        holds = {
            Guard.LEASE_OVER: task.attempt.ends_us <= self.now_us
            and (task.state is S.CANCELLING or self.now_us >= self.suspended_us),
            Guard.DEADLINE_OVER: task.deadline_us <= self.now_us,
            Guard.TIMEOUT_OVER: self._timed_out(task),
            Guard.CANCEL_OVER: task.cancel_ends_us is not None and task.cancel_ends_us <= self.now_us,
            Guard.WORKER_REVOKED: self.orders[task.attempt.worker] is WorkerOrder.REVOKE,
        }[guard]
        return task if holds else None

    def settle(
        self, hold: Hold, guard: Guard, settlement: Settlement, digest: str
    ) -> tuple[SettleAnswer, TaskState | None]:
        """What one item of a settle answers, and all that follows from it."""
        task = self._guard_holds(hold, guard)
        if task is None or task.attempt is None or not self._legal(task, settlement):
            known = self.ended.get(hold.attempt_id)
            if known is not None and known[0] == digest:
                return SettleAnswer.REPLAYED, known[1]
            return SettleAnswer.LEASE_LOST, None
        known_move = settlement.state in targets(task.state, settlement.event)
        self.reached[task.state, settlement.event if known_move else Event.ACKNOWLEDGE] += 1
        state = self._apply(task, task.attempt, settlement)
        self.ended[hold.attempt_id] = (digest, state)
        return SettleAnswer.APPLIED, state

    def _legal(self, task: MTask, settlement: Settlement) -> bool:
        return task.state is S.CANCELLING or settlement.state in targets(task.state, settlement.event)

    def _apply(self, task: MTask, attempt: MAttempt, settlement: Settlement) -> TaskState:
        if attempt.receipt is not None:
            if attempt.receipt:
                return self._ended_by(task, S.PARTIALLY_SUCCEEDED, Reason.ITEMS_FAILED)
            return self._ended_by(task, S.SUCCEEDED, Reason.OK)
        if task.state is S.CANCELLING:
            assert task.cancel_reason is not None
            return self._ended_by(task, S.CANCELLED, task.cancel_reason)
        task.failures += settlement.charge in (Charge.ATTEMPT, Charge.LOSS_AND_ATTEMPT)
        task.losses += settlement.charge in (Charge.LOSS, Charge.LOSS_AND_ATTEMPT)
        if settlement.state in ENDED:
            return self._ended_by(task, settlement.state, settlement.reason)
        task.attempt = None
        task.state = settlement.state
        task.met = True
        task.due_us = self.now_us + settlement.delay_us
        if settlement.clears_ttl:
            task.expires_us = None
        if settlement.state is S.QUEUED:
            task.rank = (0, self.step)
        return settlement.state

    def _ended_by(self, task: MTask, state: TaskState, reason: Reason) -> TaskState:
        self._end_all([(task, state, reason)])
        return state

    # What follows an end

    def _end_all(self, ending: list[tuple[MTask, TaskState, Reason]], follow: bool = True) -> None:
        for task, state, reason in ending:
            assert task.state not in ENDED
            if task.attempt is None:
                event = {S.EXPIRED: Event.EXPIRE, S.CANCELLED: Event.CANCEL}.get(state, Event.FAIL)
                self.reached[task.state, event] += 1
            task.state, task.reason, task.attempt = state, reason, None
            task.cancel_ends_us = None
            stops = task.job is not None and state in BAD_ENDS and task.spec.terms.if_failed == "cancel_job"
            if stops and task.job is not None and task.job.stopping is None:
                task.job.stopping = "failure"
        if follow:
            self._reach_children([task for task, _, _ in ending])
        else:
            self.frontier += [task.spec.id for task, _, _ in ending if task.children]

    def _reach_children(self, ended: list[MTask]) -> None:
        touched: dict[str, MTask] = {}
        for parent in ended:
            for child_id in parent.children:
                child = touched[child_id] = self.tasks[child_id]
                if child.blocked:
                    child.counted[parent.spec.id] = "good" if parent.state in GOOD_ENDS else "bad"
        self._decide(list(touched.values()))

    def _decide(self, touched: list[MTask]) -> None:
        unmet = []
        for child in touched:
            if child.state is S.PENDING and child.met:
                self._join(child)
                continue
            if child.state is not S.PENDING:
                continue
            verdict = self._rule(child)
            if verdict is True:
                self._join(child)
            elif verdict is False:
                reason = Reason.UPSTREAM_FAILED if child.spec.terms.trigger == "all_succeeded" else Reason.TRIGGER_UNMET
                unmet.append((child, S.CANCELLED, reason))
        self._end_all(unmet, follow=False)

    def _rule(self, child: MTask) -> bool | None:
        """Met, never to be met, or `None`: not yet known."""
        known = child.counted
        waits = "open" in known.values()
        good = "good" in known.values()
        bad = "bad" in known.values()
        fatal = any(each == "bad" and child.parents[parent] != "continue" for parent, each in known.items())
        match child.spec.terms.trigger:
            case "all_succeeded":
                return False if fatal else (None if waits else True)
            case "all_done":
                return None if waits else True
            case "any_succeeded":
                return True if good else (None if waits else False)
            case _:
                return True if bad else (None if waits else False)

    def cascade(self) -> None:
        """To its end: the frontier level by level, and the open tasks of stopping jobs."""
        self.step += 1
        while True:
            level, self.frontier = self.frontier, []
            self._reach_children([self.tasks[each] for each in level])
            stopped = self._stop_jobs()
            if not level and not stopped:
                return

    def _stop_jobs(self) -> int:
        moved = 0
        for job in self.jobs.values():
            if job.stopping is None:
                continue
            reason = Reason.USER if job.stopping == "requested" else Reason.UPSTREAM_FAILED
            members = [self.tasks[each] for each in job.members]
            waiting = [(each, S.CANCELLED, reason) for each in members if each.state in WAITING]
            self._end_all(waiting)
            held = [each for each in members if each.state in (S.LEASED, S.RUNNING)]
            for task in held:
                self._cancel_held(task, reason, limits.CANCEL_GRACE_DEFAULT_US)
            moved += len(waiting) + len(held)
        return moved

    # Operators

    def _cancel_held(self, task: MTask, reason: Reason, grace_us: int) -> None:
        self.reached[task.state, Event.CANCEL] += 1
        task.state = S.CANCELLING
        task.cancel_reason = reason
        task.cancel_ends_us = self.now_us + grace_us

    def cancel(self, task_id: str, grace_us: int) -> CancelAnswer:
        """What a cancel answers, and what follows."""
        self.step += 1
        task = self.tasks.get(task_id)
        if task is None:
            return CancelAnswer.NOT_FOUND
        if task.state in WAITING:
            self._end_all([(task, S.CANCELLED, Reason.USER)])
            return CancelAnswer.CANCELLED
        if task.state in (S.LEASED, S.RUNNING):
            self._cancel_held(task, Reason.USER, grace_us)
            return CancelAnswer.CANCELLING
        return CancelAnswer.ALREADY if task.state in (S.CANCELLING, S.CANCELLED) else CancelAnswer.ENDED

    def cancel_job(self, job_id: str) -> bool:
        """Whether the job was open."""
        job = self.jobs[job_id]
        if self.open(job) == 0:
            return False
        job.stopping = "requested"
        return True

    def redrive(self, task_id: str) -> TaskState | None:
        """The state of the task that runs again; `None` where it cannot."""
        self.step += 1
        task = self.tasks[task_id]
        if task.state not in (S.FAILED, S.DEAD_LETTERED):
            return None
        if task.job is not None and self.open(task.job) == 0:
            task.job.stopping = None
        again = [task, *self._fallen(task)]
        for each in again:
            self.reached[each.state, Event.REDRIVE if each is task else Event.REVIVE] += 1
            each.state, each.reason, each.generation = S.PENDING, None, each.generation + 1
            each.failures = each.losses = 0
            each.deadline_us, each.cancel_reason, each.met = None, None, False
            each.due_us = self.now_us
            each.expires_us = None if each.spec.terms.ttl_us is None else self.now_us + each.spec.terms.ttl_us
        gone = {each.spec.id for each in again}
        self.frontier = [each for each in self.frontier if each not in gone]
        blocked = [each for each in self.tasks.values() if each.blocked and gone & each.parents.keys()]
        for each in (*again, *blocked):
            self._recount(each)
        for each in again:
            if not each.parents:
                self._join(each)
        self._decide([each for each in again if each.parents])
        return task.state

    def _fallen(self, top: MTask) -> list[MTask]:
        found: dict[str, MTask] = {}
        level = [top]
        while level:
            children = [self.tasks[each] for task in level for each in task.children if each not in found]
            level = [each for each in children if each.state is S.CANCELLED and each.reason in FALLEN]
            found |= {each.spec.id: each for each in level}
        return list(found.values())

    def _recount(self, task: MTask) -> None:
        for parent_id in task.parents:
            parent = self.tasks[parent_id]
            if parent.state not in ENDED or parent_id in self.frontier:
                task.counted[parent_id] = "open"
            else:
                task.counted[parent_id] = "good" if parent.state in GOOD_ENDS else "bad"

    # Looking

    def open(self, job: MJob) -> int:
        """How many tasks of a job have not ended."""
        return sum(1 for each in job.members if self.tasks[each].state not in ENDED)

    def job_state(self, job: MJob) -> JobState:
        """The state of a job, from its tasks alone."""
        if self.open(job):
            return JobState.RUNNING if job.started else JobState.PENDING
        members = [self.tasks[each] for each in job.members]
        bad = [each for each in members if each.state in BAD_ENDS]
        if job.stopping == "requested":
            return JobState.CANCELLED
        if any(each.spec.terms.if_failed != "continue" for each in bad):
            return JobState.FAILED
        if bad or any(each.state is S.PARTIALLY_SUCCEEDED for each in members):
            return JobState.PARTIALLY_SUCCEEDED
        if all(each.state is S.CANCELLED for each in members):
            return JobState.CANCELLED
        return JobState.SUCCEEDED

    def held(self) -> list[MTask]:
        """Tasks with a live attempt."""
        return [task for task in self.tasks.values() if task.state in HELD]
