"""Instants of schedules that make tasks and jobs, each once.

A schedule is taken first, by one transaction at a time and only as it was seen, so that of two that have worked out the
same only one goes on. Then its instants are kept, which their key allows once, and what they make is submitted with
them. Locks are taken in the order of schedule, task, job.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from perdure.domain.limits import FIRE_WAIT_US, FIRES_OPEN_MAX
from perdure.domain.schedule import Cause, FireOutcome, SkipReason, Stretch, overlapping
from perdure.domain.states import Reason
from perdure.domain.task import Job, Task
from perdure.errors import NotFound, PerdureError, UniqueConflict
from perdure.store.ledger import Cancellation
from perdure.store.relational import cancelling
from perdure.store.relational.lanes import Lanes
from perdure.store.relational.transaction import Transaction, batch
from perdure.store.schedules import Asked, Fired, Firing, Made

Submit = Callable[[Any, list[Any], Lanes], list[Any]]
Work = Task | Job
Skip = tuple[Stretch, str | None]


class Submitting(NamedTuple):
    """How a store stores tasks and jobs within a transaction."""

    tasks: Submit
    jobs: Submit


class Plan:
    """What is to come of a schedule that was taken."""

    def __init__(self, firing: Firing, waiting_us: int | None) -> None:
        self.firing = firing
        self.waiting_us = waiting_us
        self.begun_us: int | None = None
        """The instant that waited, if its turn has come."""
        self.works: dict[int, Work] = {}
        self.cancelled: list[tuple[str | None, str | None]] = []
        """Tasks and jobs to be cancelled."""
        self.skips: list[Skip] = [(stretch, None) for stretch in firing.skipped]
        self.last: tuple[int, FireOutcome, SkipReason | None, Work | None] | None = None

    def fire(self, instant: int, work: Work) -> None:
        self.works[instant] = work
        self.last = (instant, FireOutcome.FIRED, None, work)

    def wait(self, instant: int) -> None:
        self.waiting_us = instant
        self.last = (instant, FireOutcome.WAITING, None, None)

    def skip(self, instant: int, reason: SkipReason, text: str | None = None) -> None:
        """Skip an instant: together with those just before it, if they were skipped for the same reason."""
        after = self.last is not None and self.last[1] == FireOutcome.SKIPPED
        if after and self.skips and (self.skips[-1][0].reason, self.skips[-1][1]) == (reason, text):
            before = self.skips[-1][0]
            self.skips[-1] = (before._replace(last_us=instant, instants=before.instants + 1), text)
        else:
            self.skips.append((Stretch(instant, instant, 1, reason), text))
        self.last = (instant, FireOutcome.SKIPPED, reason, None)

    @property
    def place(self) -> dict[str, str]:
        """The schedule, as statements about fires are bound to it."""
        return {"organization": self.firing.organization, "schedule": self.firing.name}


def fire(tx: Transaction, firings: Sequence[Firing], submitting: Submitting, lanes: Lanes) -> list[Fired]:
    """Decide about the instants of schedules; what all of them make is submitted together."""
    plans: list[Plan | None] = []
    taken: set[tuple[str, str]] = set()
    for firing in firings:
        key = (firing.organization, firing.name)
        plan = None if key in taken else _take(tx, firing)
        if plan is not None:
            taken.add(key)
            _decide(plan, _open(tx, plan))
            _keep(tx, plan)
        plans.append(plan)
    refused = _submit(
        tx, [work for plan in plans if plan is not None for work in plan.works.values()], submitting, lanes
    )
    return [Fired(False) if plan is None else _conclude(tx, plan, refused) for plan in plans]


def _take(tx: Transaction, firing: Firing) -> Plan | None:
    version, next_us, paused = firing.seen
    rows = tx.run(
        "schedule_take",
        organization=firing.organization,
        name=firing.name,
        version=version,
        seen=next_us,
        paused=paused,
    )
    return Plan(firing, rows[0][0]) if rows else None


def _open(tx: Transaction, plan: Plan) -> list[tuple[str | None, str | None]]:
    """What earlier instants made that has not ended, as far as that matters here."""
    tx.run("fire_close", **plan.place, count=FIRES_OPEN_MAX)
    if plan.firing.overlap == "allow":
        return []
    return [(task, job) for task, job in tx.document("fire_open", **plan.place, count=FIRES_OPEN_MAX)]


def _decide(plan: Plan, open_work: list[tuple[str | None, str | None]]) -> None:
    firing = plan.firing
    is_open = bool(open_work)
    if plan.waiting_us is not None and not is_open:
        is_open = _begin_waiting(plan)
    for instant in firing.due:
        verdict = overlapping(firing.overlap, is_open, plan.waiting_us is not None)
        work = firing.works.get(instant)
        if verdict.outcome == FireOutcome.WAITING:
            plan.wait(instant)
        elif verdict.outcome == FireOutcome.SKIPPED or (work is None and instant not in firing.refusals):
            plan.skip(instant, SkipReason.OVERLAP)
        elif work is None:
            plan.skip(instant, SkipReason.REFUSED, firing.refusals[instant])
        else:
            plan.fire(instant, work)
            is_open = True
            if verdict.cancel:
                plan.cancelled, open_work = open_work, []


def _begin_waiting(plan: Plan) -> bool:
    """Let the instant that waited make what it was to make; whether it did."""
    firing, instant = plan.firing, plan.waiting_us
    if instant is None or (firing.waiting is None and firing.waiting_refusal is None):
        return False
    plan.begun_us, plan.waiting_us = instant, None
    if firing.waiting is not None:
        plan.fire(instant, firing.waiting)
        return True
    plan.skip(instant, SkipReason.REFUSED, firing.waiting_refusal)
    return False


def _keep(tx: Transaction, plan: Plan) -> None:
    """Keep the instants. One that had made something before makes nothing again."""
    rows = [
        (instant, FireOutcome.FIRED, *_ids(work)) for instant, work in plan.works.items() if instant != plan.begun_us
    ]
    waits = plan.waiting_us is not None and plan.waiting_us in plan.firing.due
    if waits:
        rows.append((plan.waiting_us or 0, FireOutcome.WAITING, None, None))
    kept = _insert(tx, plan.place, Cause.TIME, rows)
    if plan.begun_us is not None:
        kept.add(plan.begun_us)
    plan.works = {instant: work for instant, work in plan.works.items() if instant in kept}
    if waits and plan.waiting_us not in kept:
        plan.waiting_us = None
    if plan.cancelled and plan.works:
        _cancel(tx, plan)


def _insert(tx: Transaction, place: Mapping[str, str], cause: Cause, rows: Sequence[Any]) -> set[int]:
    """The instants of these that are new."""
    if not rows:
        return set()
    return {instant for (instant,) in tx.run("fire_insert", **place, cause=cause, batch=batch(rows))}


def _ids(work: Work) -> tuple[str | None, str | None]:
    return (None, work.id) if isinstance(work, Job) else (work.id, None)


def _cancel(tx: Transaction, plan: Plan) -> None:
    organization, actor = plan.firing.organization, f"schedule:{plan.firing.name}"
    text = "the next instant of its schedule has come"
    tasks = [
        Cancellation(organization, task, actor, Reason.SUPERSEDED, text, None, plan.firing.grace_us)
        for task, _ in plan.cancelled
        if task is not None
    ]
    if tasks:
        cancelling.cancel(tx, tasks)
    for _, job in plan.cancelled:
        if job is not None:
            try:
                cancelling.cancel_job(tx, organization, job, actor, text)
            except NotFound:
                # It ended, and was removed, since it was found open.
                continue


def _submit(tx: Transaction, works: Iterable[Work], submitting: Submitting, lanes: Lanes) -> dict[str, PerdureError]:
    """Submit what instants make; the refusals, by id."""
    tasks: list[Any] = []
    jobs: list[Any] = []
    for work in works:
        (jobs if isinstance(work, Job) else tasks).append(work)
    answers = [
        *(submitting.tasks(tx, tasks, lanes) if tasks else ()),
        *(submitting.jobs(tx, jobs, lanes) if jobs else ()),
    ]
    refused: dict[str, PerdureError] = {}
    for work, answer in zip([*tasks, *jobs], answers, strict=True):
        if isinstance(answer, PerdureError):
            refused[work.id] = answer
        elif answer.id != work.id:
            # It is unique, or was asked for before under this key, and another is there for it.
            what = "job" if isinstance(work, Job) else "task"
            there = {f"{what}_id": answer.id, "replayed": answer.replayed or None}
            refused[work.id] = UniqueConflict(f"{what} {answer.id} is there already", **there)
    return refused


def _conclude(tx: Transaction, plan: Plan, refused: Mapping[str, PerdureError]) -> Fired:
    gone = {instant for instant, work in plan.works.items() if work.id in refused}
    if plan.begun_us is not None and plan.begun_us not in plan.works:
        gone.add(plan.begun_us)
    for instant in sorted(gone & plan.works.keys()):
        plan.skip(instant, SkipReason.REFUSED, str(refused[plan.works[instant].id]))
    if gone:
        tx.run("fire_remove", **plan.place, batch=batch(sorted(gone)))
    if plan.begun_us is not None and plan.begun_us not in gone:
        task, job = _ids(plan.works[plan.begun_us])
        tx.run("fire_begin", **plan.place, instant=plan.begun_us, task=task, job=job)
    keep_skips(tx, plan.place, plan.skips)
    _advance(tx, plan)
    made = [work.id for instant, work in plan.works.items() if instant not in gone]
    return Fired(True, made, sum(stretch.instants for stretch, _ in plan.skips))


def keep_skips(tx: Transaction, place: Mapping[str, str], skips: Sequence[Skip]) -> None:
    """Keep instants that made nothing."""
    if skips:
        rows = [(each.first_us, each.last_us, each.instants, each.reason, text) for each, text in skips]
        tx.run("skip_insert", **place, batch=batch(rows))


def _advance(tx: Transaction, plan: Plan) -> None:
    firing = plan.firing
    last = plan.last
    if last is None and firing.skipped:
        last = (firing.skipped[-1].last_us, FireOutcome.SKIPPED, firing.skipped[-1].reason, None)
    instant, outcome, reason, work = last or (None, None, None, None)
    task, job = (None, None) if work is None else _ids(work)
    look_us = firing.look_us
    if plan.waiting_us is not None:
        soon_us = tx.now_us + FIRE_WAIT_US
        look_us = soon_us if look_us is None else min(look_us, soon_us)
    tx.run(
        "schedule_advance",
        organization=firing.organization,
        name=firing.name,
        next_us=firing.next_us,
        look_us=look_us,
        waiting_us=plan.waiting_us,
        resumed=firing.resumed,
        last_us=instant,
        last_outcome=outcome,
        last_reason=reason,
        last_task_id=task,
        last_job_id=job,
    )


def ask(tx: Transaction, asked: Asked, submitting: Submitting, lanes: Lanes) -> list[Made]:
    """Let instants make something that somebody asked for."""
    place = {"organization": asked.organization, "schedule": asked.name}
    rows = [(instant, FireOutcome.FIRED, *_ids(work)) for instant, work in asked.works]
    new = _insert(tx, place, asked.cause, rows)
    refused = _submit(tx, [work for instant, work in asked.works if instant in new], submitting, lanes)
    gone = [instant for instant, work in asked.works if work.id in refused]
    if gone:
        tx.run("fire_remove", **place, batch=batch(gone))
    before = [instant for instant, _ in asked.works if instant not in new]
    known = {instant: (task, job) for instant, task, job in tx.run("fire_find", **place, batch=batch(before))}
    return [
        Made(instant, *known[instant], replayed=True)
        if instant in known
        else Made(instant, *_ids(work), replayed=False, error=refused.get(work.id))
        for instant, work in asked.works
    ]
