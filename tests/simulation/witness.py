"""A second account of what every commit may do, kept outside the system: which attempt lives, until when, what ended.

It hears each call of the ledger with its answer at the moment of its commit (whether or not the answer arrives), and
sees the rows that the commit moved. It knows the rules of the lifecycle, not the SQL.
"""

from collections.abc import Sequence
from typing import Any

from perdure.domain import limits
from perdure.domain.attempt import Lease
from perdure.domain.states import BAD_ENDS, ENDED, GOOD_ENDS, HELD, WAITING, Reason, TaskState
from perdure.domain.transitions import Event, targets
from perdure.errors import PerdureError
from perdure.store.ledger import (
    CancelAnswer,
    ClaimRequest,
    Guard,
    SettleAnswer,
    Settling,
    WorkerOrder,
)
from simulation.breakers import BreakerAccount
from simulation.coverage import Coverage
from simulation.gated import ALONE, KINDS, GateAccount
from simulation.job_account import JobAccount
from simulation.known import Attempt, Commit, Known, Step
from simulation.matching import ActAccount
from simulation.observer import Move, Observer
from simulation.policies import FlowAccount
from simulation.unique import KeyAccount

TIMEOUT_GRACE_US = 30_000_000


class Witness:
    """Collects violations."""

    def __init__(self, observer: Observer, coverage: Coverage) -> None:
        self.observer = observer
        self.coverage = coverage
        self.violations: list[str] = []
        self.tasks: dict[str, Known] = {}
        self._by_number: dict[int, Known] = {}
        self._attempts: set[tuple[str, str]] = set()
        """Every attempt that was ever made, with its task."""
        self._digests: set[tuple[str, str]] = set()
        self._revoked: set[str] = set()
        self._now_us = 0
        self._suspended_until_us = 0
        self._grace_us = 0
        self._along: tuple[ClaimRequest, list[Lease]] | None = None
        """What the commit has taken along that is told of next."""
        self.acts = ActAccount(self.wrong, self.tasks)
        self.flow = FlowAccount(self.wrong, coverage, observer)
        self._accounts = (
            GateAccount(self.wrong, coverage),
            KeyAccount(self.wrong, coverage, observer, self.tasks),
            self.flow,
            JobAccount(self.wrong, coverage, observer, self.tasks, lambda hold: self._live(hold) is not None),
            BreakerAccount(self.wrong, coverage),
            self.acts,
        )

    def wrong(self, fact: str) -> None:
        """Note a violation."""
        self.violations.append(fact)

    def knows_attempt(self, attempt_id: str, task_id: str) -> bool:
        """Whether such a claim was ever committed."""
        return (attempt_id, task_id) in self._attempts

    def attempt_of(self, task_id: str) -> str:
        """The id of a task's live attempt; empty without one."""
        known = self.tasks.get(task_id)
        return known.attempt.id if known is not None and known.attempt is not None else ""

    def committed(self, verb: str, arguments: Sequence[Any], answer: Any, now_us: int, who: str = "") -> bool:
        """A call has committed, or was refused: look at what it moved and what it answers. Whether it moved any."""
        self._now_us = now_us
        moves = self.observer.moves()
        along, self._along = self._along, None
        if along is None:
            self._commit(Commit(verb, arguments, answer, now_us, who), moves)
        else:
            # One commit, and two calls: what the claim has moved comes last.
            made = {lease.hold.attempt_id for lease in along[1]}
            cut = next(n for n, move in enumerate(moves) if move.attempt in made)
            self._commit(Commit(verb, arguments, answer, now_us, who), moves[:cut])
            self._commit(Commit("claim", (along[0],), along[1], now_us, who), moves[cut:])
        return bool(moves)

    def _commit(self, commit: Commit, moves: Sequence[Move]) -> None:
        verb, arguments, answer = commit.verb, commit.arguments, commit.answer
        for account in self._accounts:
            account.before(commit)
        settlings = {each.hold.task_id: each for each in arguments[0]} if verb == "settle" else {}
        if verb == "order" and not isinstance(answer, BaseException):
            self._note_order(*arguments[1:3])
        if verb == "suspend_losses" and not isinstance(answer, BaseException):
            self._suspended_until_us = max(self._suspended_until_us, arguments[0])
        if verb == "cascade":
            self._grace_us = arguments[1] if len(arguments) > 1 else limits.CANCEL_GRACE_DEFAULT_US
        if verb == "fire":
            self._grace_us = max((each.grace_us for each in arguments[0]), default=0)
        for move in moves:
            self._move(commit, move, settlings)
        look = getattr(self, f"_answered_{verb}", None)
        if look is not None and not isinstance(answer, BaseException):
            look(arguments, answer)
        for account in self._accounts:
            account.after(commit)

    def stood_by(self, request: ClaimRequest, leases: list[Lease]) -> None:
        """The commit that is about to be told of has taken a claim along."""
        self._along = (request, leases)
        self.coverage.facts["claims taken along"] += 1

    def received(self, hold: Any, result: bytes, now_us: int) -> None:
        """A receipt was committed in a handler's own transaction."""
        self._now_us = now_us
        known = self.tasks[hold.task_id]
        attempt = known.attempt
        if attempt is None or attempt.id != hold.attempt_id or now_us >= attempt.ends_us:
            self.wrong(f"a stale attempt wrote a receipt of {hold.task_id}")
        if known.state is TaskState.CANCELLING:
            self.wrong(f"a receipt of {hold.task_id} was taken while it was being cancelled")
        known.receipt = (hold.attempt_id, result)

    # What moved

    def _move(self, commit: Commit, move: Move, settlings: dict[str, Settling]) -> None:
        known = self._by_number.get(move.task)
        if known is None or (move.what == "begin" and move.generation == 1):
            # The number of a task that was removed may come again.
            known = Known(move.task, self.observer.task(move.task))
            self._by_number[move.task] = self.tasks[known.row.id] = known
        if move.what == "rewrite":
            self.wrong(f"{commit.verb} rewrote the end of {known.row.id}")
        elif move.what == "remove":
            # The end of one that runs again goes, too.
            known.removed = not known.open
        elif move.what in ("begin", "move", "end"):
            known.removed = False
            self._transition(commit, known, move, settlings.get(known.row.id))

    def _transition(self, commit: Commit, known: Known, move: Move, settling: Settling | None) -> None:
        verb, old, new = commit.verb, known.state, TaskState(move.state)
        event = _event(old, new, settling)
        name = f"{verb} moved {known.row.id} from {old} to {new}"
        if event is None or new not in targets(old, event):
            self.wrong(f"{name} by {event}, which the lifecycle does not have")
        else:
            self.coverage.moves[str(old) if old else "(none)", str(event)] += 1
        if old in HELD and new not in HELD:
            self._check_end_of_attempt(name, known, settling)
            known.attempt = None
        if new is TaskState.LEASED:
            self._check_claimable(name, known)
        if event is Event.PROMOTE and move.due_us > self._now_us:
            self.wrong(f"{name} at {self._now_us}, but it is due at {move.due_us}")
        if new is TaskState.CANCELLING and known.attempt is not None:
            known.attempt.cancel_ends_us = self._now_us + self._grace_of(verb, known)
        if old in ENDED and move.generation != known.generation + 1:
            self.wrong(f"{name} in generation {move.generation} after {known.generation}")
        known.state, known.generation = new, move.generation
        if new in ENDED:
            if move.generation in known.ends:
                self.wrong(f"{name}: generation {move.generation} ended twice")
            known.ends[move.generation] = new
        known.reason = move.reason
        step = Step(known, old, new, event, move.what == "begin")
        for account in self._accounts:
            account.moved(commit, step)

    def _grace_of(self, verb: str, known: Known) -> int:
        """How long a holder has to stop, unless a cancel says so itself."""
        superseded = known.row.kind in ALONE
        return limits.CANCEL_GRACE_DEFAULT_US if superseded or verb not in ("cascade", "fire") else self._grace_us

    def _check_end_of_attempt(self, name: str, known: Known, settling: Settling | None) -> None:
        attempt = known.attempt
        if settling is None:
            self.wrong(f"{name}: an attempt ended without a settle")
            return
        if attempt is None or settling.hold.attempt_id != attempt.id:
            self.wrong(f"{name} for attempt {settling.hold.attempt_id}, which does not live")
            return
        if not self._guard_holds(known, attempt, settling):
            self.wrong(f"{name} though its guard {settling.guard} does not hold at {self._now_us}: {attempt}")
        self._digests.add((attempt.id, settling.digest))

    def _guard_holds(self, known: Known, attempt: Attempt, settling: Settling) -> bool:
        now_us = self._now_us
        match settling.guard:
            case Guard.HOLDER:
                live = now_us < attempt.ends_us and attempt.worker not in self._revoked
                return settling.hold.token == attempt.token and live
            case Guard.LEASE_OVER:
                # What is to stop anyway is not held back.
                suspended = known.state is not TaskState.CANCELLING and now_us < self._suspended_until_us
                return now_us >= attempt.ends_us and not suspended
            case Guard.DEADLINE_OVER:
                return now_us >= attempt.deadline_us
            case Guard.TIMEOUT_OVER:
                timeout_us = known.row.timeout_us
                return timeout_us is not None and now_us >= attempt.leased_us + timeout_us + TIMEOUT_GRACE_US
            case Guard.CANCEL_OVER:
                return attempt.cancel_ends_us is not None and now_us >= attempt.cancel_ends_us
            case Guard.WORKER_REVOKED:
                return attempt.worker in self._revoked

    def _check_claimable(self, name: str, known: Known) -> None:
        if known.attempt is not None:
            self.wrong(f"{name} while attempt {known.attempt.id} lives")
        if known.cancel_answered:
            self.wrong(f"{name} after its cancel was answered")
        if known.row.parents and known.generation == 1:
            parents = self.observer.parents(known.number)
            if all(generation == 1 for _, generation, _ in parents) and not _met(known.row.rule, parents):
                self.wrong(f"{name} by {known.row.rule} when its parents are {parents}")

    # What was answered

    def _note_order(self, worker: str, order: WorkerOrder) -> None:
        if order is WorkerOrder.REVOKE:
            self._revoked.add(worker)
        else:
            self._revoked.discard(worker)

    def _answered_claim(self, arguments: Sequence[Any], leases: list[Lease]) -> None:
        wanted = {attempt for attempt, _ in arguments[0].leases}
        for lease in leases:
            known, hold = self.tasks[lease.hold.task_id], lease.hold
            if hold.attempt_id not in wanted or known.state not in HELD:
                self.wrong(f"claim answered attempt {hold.attempt_id} of {hold.task_id}, which is {known.state}")
            if known.attempt is not None and known.attempt.id == hold.attempt_id:
                continue
            if (hold.attempt_id, hold.task_id) in self._attempts:
                self.wrong(f"attempt {hold.attempt_id} was made twice")
            if lease.fence <= known.fence:
                self.wrong(f"the fence of {hold.task_id} went from {known.fence} to {lease.fence}")
            now_us = self._now_us
            known.fence = lease.fence
            known.attempt = Attempt(
                hold.attempt_id,
                hold.token,
                arguments[0].worker_id,
                now_us,
                now_us + lease.lease_us,
                now_us + lease.deadline_us,
            )
            self._attempts.add((hold.attempt_id, hold.task_id))
            self.coverage.facts["attempts"] += 1

    def _live(self, hold: Any) -> Attempt | None:
        """The attempt, if it may act now."""
        known = self.tasks.get(hold.task_id)
        attempt = known.attempt if known is not None else None
        if attempt is None or (attempt.id, attempt.token) != (hold.attempt_id, hold.token):
            return None
        over = self._now_us >= attempt.ends_us or attempt.worker in self._revoked
        return None if over else attempt

    def _answered_renew(self, arguments: Sequence[Any], answers: list[Any]) -> None:
        for renewal, answer in zip(arguments[0], answers, strict=True):
            attempt = self._live(renewal.hold)
            if attempt is not None and attempt.cancel_ends_us is not None and self._now_us >= attempt.cancel_ends_us:
                attempt = None
            if (attempt is None) != (answer is None):
                self.wrong(f"renew answered {answer} to {renewal.hold.attempt_id} at {self._now_us}: {attempt}")
            if attempt is not None and answer is not None:
                attempt.ends_us = self._now_us + answer.lease_us

    def _answered_report(self, arguments: Sequence[Any], answers: list[Any]) -> None:
        for report, answer in zip(arguments[0], answers, strict=True):
            if isinstance(answer, PerdureError):
                continue
            known = self.tasks[report.hold.task_id]
            if self._live(report.hold) is None or known.state is TaskState.CANCELLING:
                self.wrong(f"a report of attempt {report.hold.attempt_id} was taken, which is {known}")

    def _answered_settle(self, arguments: Sequence[Any], answers: list[Any]) -> None:
        for settling, settled in zip(arguments[0], answers, strict=True):
            named = (settling.hold.attempt_id, settling.digest)
            if settled.answer is not SettleAnswer.LEASE_LOST and named not in self._digests:
                self.wrong(f"settle answered {settled} to attempt {named}, for which nothing was committed")
            if settled.answer is SettleAnswer.LEASE_LOST and self._may_settle(settling):
                self.wrong(f"settle answered {settled} to attempt {named}, which lives")
            if settled.answer is SettleAnswer.APPLIED:
                known = self.tasks[settling.hold.task_id]
                if known.state is not settled.state and not _went_on(known, settled.state):
                    self.wrong(f"settle answered {settled} for {settling.hold.task_id}, which is {known.state}")
                self._note_result(known, settling)

    def _may_settle(self, settling: Settling) -> bool:
        conditional = (Event.ACKNOWLEDGE, Event.EXPIRE)
        return (
            settling.guard is Guard.HOLDER
            and settling.settlement.event not in conditional
            and self._live(settling.hold) is not None
        )

    def _note_result(self, known: Known, settling: Settling) -> None:
        if known.state not in GOOD_ENDS:
            return
        if known.receipt is not None and known.receipt[0] == settling.hold.attempt_id:
            known.result = known.receipt[1]
        elif settling.settlement.result is not None:
            known.result = bytes(settling.settlement.result.data)

    def _answered_submit(self, arguments: Sequence[Any], answers: list[Any]) -> None:
        for answer in answers:
            if not isinstance(answer, PerdureError):
                known = self.tasks.get(answer.id)
                if known is not None and len(answers) > 1 and '"unique"' in (known.row.options or ""):
                    # Another one of the same call may have moved it.
                    continue
                if known is None or (not answer.replayed and known.state is not answer.state):
                    self.wrong(f"submit answered {answer}, but there is {known}")

    def _answered_submit_jobs(self, arguments: Sequence[Any], answers: list[Any]) -> None:
        for answer in answers:
            if not isinstance(answer, PerdureError):
                for id in answer.task_ids.values():
                    if id not in self.tasks:
                        self.wrong(f"submit_jobs answered task {id}, which is not there")

    def _answered_cancel(self, arguments: Sequence[Any], answers: list[Any]) -> None:
        for cancellation, answer in zip(arguments[0], answers, strict=True):
            known = self.tasks.get(cancellation.task_id)
            if known is not None and known.row.organization != cancellation.organization:
                if answer.answer is not CancelAnswer.NOT_FOUND:
                    self.wrong(f"cancel answered {answer} to a stranger, for {known}")
                continue
            if answer.answer is CancelAnswer.CANCELLED and known is not None:
                known.cancel_answered = True
            if answer.answer is CancelAnswer.CANCELLING and known is not None and known.attempt is not None:
                known.attempt.cancel_ends_us = self._now_us + cancellation.grace_us
            if answer.answer in (CancelAnswer.CANCELLED, CancelAnswer.CANCELLING) and (
                known is None or known.state != answer.state
            ):
                self.wrong(f"cancel answered {answer}, but there is {known}")


def _event(old: TaskState | None, new: TaskState, settling: Settling | None) -> Event | None:
    """Which event of the lifecycle a move must have been."""
    if old is None:
        return Event.SUBMIT
    if old in ENDED:
        return Event.REVIVE if old in (TaskState.CANCELLED, TaskState.EXPIRED) else Event.REDRIVE
    if old in WAITING:
        return _event_of_waiting(old, new)
    if settling is None:
        return {TaskState.RUNNING: Event.START, TaskState.CANCELLING: Event.CANCEL}.get(new)
    if old is not TaskState.CANCELLING:
        return settling.settlement.event
    if settling.guard is Guard.HOLDER:
        return Event.ACKNOWLEDGE
    return Event.LOSE if settling.guard in (Guard.LEASE_OVER, Guard.WORKER_REVOKED) else Event.CANCEL_DEADLINE


def _event_of_waiting(old: TaskState, new: TaskState) -> Event | None:
    if new in BAD_ENDS and new is not TaskState.EXPIRED:
        return Event.FAIL
    return {
        TaskState.QUEUED: Event.PROMOTE,
        TaskState.PENDING: Event.POSTPONE,
        TaskState.LEASED: Event.CLAIM,
        TaskState.CANCELLED: Event.CANCEL,
        TaskState.EXPIRED: Event.EXPIRE,
    }.get(new)


def _went_on(known: Known, state: TaskState | None) -> bool:
    """Whether a task that came back to its lane waits again for a start at a rate, or was found to be overdue by the
    claim that went along with the commit.
    """
    if known.state is TaskState.EXPIRED and known.reason == Reason.TTL:
        return state in WAITING
    rated = any(limit.rate is not None for limit in KINDS.get(known.row.kind, {}).get("limits", ()))
    return rated and state is TaskState.QUEUED and known.state is TaskState.PENDING


def _met(rule: str, parents: list[tuple[str | None, int, str]]) -> bool:
    good = sum(state in GOOD_ENDS for state, _, _ in parents)
    ended = sum(state is not None for state, _, _ in parents)
    excused = sum(state is not None and state not in GOOD_ENDS and policy == "continue" for state, _, policy in parents)
    return {
        "all_succeeded": good + excused == len(parents),
        "all_done": ended == len(parents),
        "any_succeeded": good > 0,
        "any_failed": ended > good,
    }[rule]
