"""Claiming: which waiting tasks a worker gets now."""

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import msgspec

from perdure.ambient import Clock, SystemClock
from perdure.domain import limits
from perdure.domain.attempt import Hold, Lease
from perdure.domain.task import Body
from perdure.store.ledger import ClaimRequest, WorkerOrder
from perdure.store.postgres.folding import Folds
from perdure.store.postgres.grants import Catalogue, Fitting, Grants
from perdure.store.postgres.heads import Heads, Take
from perdure.store.postgres.marks import Marks
from perdure.store.postgres.passed import Looks, Passed
from perdure.store.postgres.submission import collided
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.ageing import Ageing
from perdure.store.relational.bodies import from_columns
from perdure.store.relational.ending import begin
from perdure.store.relational.flow import UNLIMITED, Rooms, rooms_of
from perdure.store.relational.lanes import Lane, Lanes
from perdure.store.relational.sweeping import sweep_due, sweep_overdue
from perdure.store.relational.transaction import batch

_decode = msgspec.json.Decoder().decode
_NO_PAYLOAD = Body(b"null")
HELD_STEP_US = limits.SECOND_US
"""The bound below the fences that a worker holds is written when it has moved by this much."""
KNOWN_MAX = 256
"""How many workers' rows are remembered."""
GUESS_AGAIN_US = limits.SECOND_US
"""After a guess was wrong, none is made for so long."""
TURNS_MAX = 16
"""How often a claim looks again, where the next tasks of keys that take turns joined while it went on."""
TOGETHER_US = limits.SECOND_US
"""What is to be looked at again within so long is looked at by one claim."""
ROUNDS_MAX = 3
"""How often a claim looks again when others took what it had seen."""


class _Worker(NamedTuple):
    """A worker's row, which the claim has locked."""

    id: str
    grants: Grants
    capacity: int
    order: str
    held_from: int
    newest_lane: int | None
    due_us: int | None
    """The first instant found at which a waiting task is due, if that has come."""
    overdue_us: int | None
    """The first one found at which a waiting task is past its TTL or deadline, if that has come."""

    def as_guessed(self, guess: "_Worker") -> bool:
        """Whether a claim that took this row for `guess` has done right."""
        same = self[1:4] == guess[1:4] and self.newest_lane == guess.newest_lane
        return same and self.held_from >= guess.held_from and self.due_us is None and self.overdue_us is None


class Claims:
    """Claims of one process, with what it remembers between them. Used by one thread at a time.

    `folds` fold changes of counts on the way, after a claim. `remind` is told after how many microseconds a worker that
    got less than it wanted is to claim once more: then it is time for what this claim has not looked at.
    """

    def __init__(
        self,
        clock: Clock | None = None,
        folds: Folds | None = None,
        remind: Callable[[int], None] = lambda delay_us: None,
    ) -> None:
        clock = clock or SystemClock()
        self._marks = Marks(clock)
        self._catalogue = Catalogue(clock, self._marks.keep_only)
        self._heads = Heads(clock, self._marks)
        self._folds = folds or Folds(clock)
        self._due, self._overdue = Passed(clock.monotonic_us), Passed(clock.monotonic_us)
        """From where on to look for what time has brought, before a claim."""
        self._remind = remind
        self._monotonic_us = clock.monotonic_us
        self._known: dict[str, _Worker] = {}
        self._ageing = Ageing()
        self.limited = False
        """Whether a queue or an organization had a limit when that was last looked at."""
        self._guess_again_us = 0

    def claim(self, tx: Transaction, requests: Sequence[ClaimRequest], lanes: Lanes) -> list[list[Lease]]:
        """Lease tasks to the workers of these requests, one after the other, in the order of their rows' locks."""
        answers: list[list[Lease]] = [[] for _ in requests]
        # Another claim of the same worker may have gates, and come to the worker's row then.
        tx.wait_no_more()
        for place in sorted(range(len(requests)), key=lambda place: requests[place].worker_id):
            answers[place] = self._claim(tx, requests[place])
        few = any(len(leases) < len(each.leases) for leases, each in zip(answers, requests, strict=True))
        if any(answers):
            self._folds.fold_if_time(tx, awaited=few)
        return answers

    def _claim(self, tx: Transaction, request: ClaimRequest) -> list[Lease]:
        if not request.leases:
            return []
        leases = request.leases[: limits.CLAIM_MAX_TASKS]
        begun_us = self._monotonic_us()
        rooms = UNLIMITED
        rows = self._guessed(tx, request, leases)
        if rows is None:
            worker = self._look(tx, request.worker_id)
            if worker is None or worker.order != WorkerOrder.WORK:
                return []
            fitting = self._aged(tx, request, self._catalogue.fitting(tx, worker.grants, worker.newest_lane))
            self._marks.look_below(tx, fitting.rank)
            self.limited = fitting.flow.limited
            rooms = rooms_of(tx, fitting.flow, fitting.lanes) if fitting.limited else UNLIMITED
            rows = self._lease(tx, worker, leases, fitting, rooms)
            self._remember(worker)
        if len(rows) < len(leases):
            self._remind_when_committed(tx, begun_us)
        jobs = {row[23] for row in rows if row[23] is not None}
        if jobs:
            tx.run("job_start", batch=batch(sorted(jobs)))
        rooms.spend(tx, [(row[4], row[0], row[1]) for row in rows if row[22] is not None])
        self._begin(tx, request, leases, rows, rooms)
        return [_lease_of(row, self._catalogue.lane(tx, row[4])) for row in rows]

    def _begin(
        self,
        tx: Transaction,
        request: ClaimRequest,
        leases: Sequence[tuple[str, str]],
        rows: list[tuple[Any, ...]],
        rooms: Rooms,
    ) -> None:
        """Let the next tasks of keys that take turns join; where the claim got less than it wants, it has them too."""
        got = rows
        for _ in range(TURNS_MAX):
            others = begin(tx, [(row[0], row[1], row[18]) for row in got if row[18] is not None])
            worker = self._known.get(request.worker_id)
            if not others or len(rows) >= len(leases) or worker is None:
                return
            fitting = self._aged(tx, request, self._catalogue.fitting(tx, worker.grants, worker.newest_lane))
            got = self._lease(tx, worker, leases[len(rows) :], fitting, rooms)
            rooms.spend(tx, [(row[4], row[0], row[1]) for row in got])
            rows += got

    def _aged(self, tx: Transaction, request: ClaimRequest, fitting: Fitting) -> Fitting:
        """The same lanes, by the priorities by which they count now."""
        if not request.ageing_us or len(fitting.bands) <= 1:
            return fitting
        heads = [stretch for lane in fitting.rank for stretch in self._marks.stretches(lane)]
        priorities = self._ageing.priorities(tx, request.ageing_us, heads, fitting.lanes)
        return Fitting(fitting.lanes, fitting.flow, priorities) if self._ageing.raises else fitting

    def _look(self, tx: Transaction, worker_id: str) -> _Worker | None:
        """Lock the worker's row, so that no other claim of it goes on beside this one; and do first what time has
        done.
        """
        looks = Looks(self._due.look(tx), self._overdue.look(tx))
        found = tx.run("claim_look", worker=worker_id, **looks.bindings)
        looks.answered()
        worker = _worker_of(worker_id, found)
        if worker is None:
            return None
        if worker.due_us is not None:
            sweep_due(tx, limits.SWEEP_MAX_TASKS, looks.due.since_us)
        if worker.overdue_us is not None:
            sweep_overdue(tx, limits.SWEEP_MAX_TASKS, looks.overdue.since_us)
        looks.found(worker.due_us, worker.overdue_us)
        return worker

    def _remind_when_committed(self, tx: Transaction, begun_us: int) -> None:
        """Something may be there all the same: below the marks, in a lane that is not known yet, or entered late."""

        def remind() -> None:
            looks = [
                (self._marks.looked_us, self._marks.look_again_us),
                (self._catalogue.loaded_us, self._catalogue.load_all_us),
                (self._due.whole.begun_us, self._due.whole.again_us),
                (self._overdue.whole.begun_us, self._overdue.whole.again_us),
            ]
            owed = sorted(again_us for looked_us, again_us in looks if looked_us < begun_us)
            if owed:
                # One claim for several looks; but none waits long for another that takes long, and so is rare.
                again_us = max(each for each in owed if each <= owed[0] + TOGETHER_US)
                self._remind(max(0, again_us - self._monotonic_us()))

        tx.after_commit(remind)

    def _remember(self, worker: _Worker) -> None:
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[worker.id] = worker

    def _guessed(
        self, tx: Transaction, request: ClaimRequest, leases: Sequence[tuple[str, str]]
    ) -> list[tuple[Any, ...]] | None:
        """Claim in one message as if the worker's row and the lanes were as they were last; `None` where that is not
        known. Where something else was true, it is all run again without guessing.
        """
        worker_id = request.worker_id
        guess = self._known.get(worker_id)
        fitting = None if guess is None else self._catalogue.remembered(guess.grants)
        begun_us = self._monotonic_us()
        if guess is None or fitting is None or begun_us < self._guess_again_us:
            return None
        if fitting.limited or any(len(band) > 1 for band in fitting.bands):
            return None
        if len(fitting.bands) > 1 and self._ageing.matters(request.ageing_us, tx.now_us):
            return None
        below, stale = self._marks.below(fitting.rank), self._catalogue.stale
        takes, _ = self._takes(tx, fitting, len(leases))
        looks = Looks(self._due.look(tx), self._overdue.look(tx))
        look = {"worker": worker_id, **looks.bindings}
        asked = [("claim_look", look), ("claim", _bindings(tx, guess, leases, takes))]
        asked += [("claim_late", {"stretches": batch(below)})] * bool(below)
        asked += [("claim_lanes", {"above": 0})] * stale
        found, rows, *more = tx.run_together(asked)
        looks.answered()
        worker = _worker_of(worker_id, found)
        if worker is None or not worker.as_guessed(guess):
            del self._known[worker_id]
            self._guess_again_us = begun_us + GUESS_AGAIN_US
            raise collided("a worker's row is not what it was")
        looks.found(None, None)
        self._known[worker_id] = worker
        late = _decode(more.pop(0)[0][0]) if below else []
        if below:
            self._marks.looked(late, begun_us)
        # Advancing past what lies below would hide it.
        self._advance_when_committed(tx, rows, {lane for lane, _ in late})
        others = stale and self._catalogue.loaded(more.pop(0), begun_us)
        if len(rows) < len(leases) and (late or others) and all(row[22] is not None for row in rows):
            fitting = self._catalogue.fitting(tx, worker.grants, worker.newest_lane)
            rows += self._lease(tx, worker, leases[len(rows) :], fitting)
        return rows

    def _advance_when_committed(
        self, tx: Transaction, rows: Sequence[tuple[Any, ...]], but: Collection[int] = ()
    ) -> None:
        picked = [(row[4], row[22]) for row in rows if row[22] is not None and row[4] not in but]
        tx.after_commit(lambda: self._marks.advance(picked))

    def _lease(
        self,
        tx: Transaction,
        worker: _Worker,
        leases: Sequence[tuple[str, str]],
        fitting: Fitting,
        rooms: Rooms = UNLIMITED,
    ) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = []
        missed = 0
        for _ in range(ROUNDS_MAX):
            takes, sure = self._takes(tx, fitting, len(leases) - len(rows) + missed, rooms)
            if rows and not takes:
                break
            got = _lease_from(tx, worker, leases[len(rows) :], takes)
            rows += got
            for row in got:
                rooms.take(row[4])
            repeated = any(row[22] is None for row in got)
            missed += sum(take[3] for take in takes) - len(got)
            if sure or repeated or not missed or len(rows) == len(leases):
                break
        self._advance_when_committed(tx, rows)
        return rows

    def _takes(self, tx: Transaction, fitting: Fitting, want: int, rooms: Rooms = UNLIMITED) -> tuple[list[Take], bool]:
        """How many to take of which stretch, in order, and whether nothing else could be taken instead.

        Where no two lanes have the same priority, one after the other gives what it has. Where some have, their first
        places are compared before anything is locked.
        """
        if fitting.limited or any(len(band) > 1 for band in fitting.bands):
            return self._heads.takes(tx, fitting, want, rooms), False
        stretches = [stretch for lane in fitting.rank for stretch in self._marks.stretches(lane)]
        return [(*stretch, want, place) for place, stretch in enumerate(stretches)], True


def _worker_of(worker_id: str, found: Sequence[tuple[Any, ...]]) -> _Worker | None:
    if not found:
        return None
    ((kinds, queues, organizations, capabilities, capacity, order, held_from, *instants, newest_lane, paused),) = found
    due_us, overdue_us = instants
    grants = Grants(kinds, queues, organizations, capabilities, paused)
    return _Worker(worker_id, grants, capacity, order, held_from, newest_lane, due_us, overdue_us)


def _lease_from(
    tx: Transaction, worker: _Worker, leases: Sequence[tuple[str, str]], takes: Sequence[Take]
) -> list[tuple[Any, ...]]:
    return tx.run("claim", **_bindings(tx, worker, leases, takes))


def _bindings(
    tx: Transaction, worker: _Worker, leases: Sequence[tuple[str, str]], takes: Sequence[Take]
) -> dict[str, Any]:
    ids = [id for id, _ in leases]
    return {
        "worker": worker.id,
        "leases": batch(leases),
        "known": batch({id: place for place, id in enumerate(ids)}),
        "first": min(ids),
        "last": max(ids),
        "want": len(leases),
        "stretches": batch(takes),
        "capacity": worker.capacity,
        "held_from": min(worker.held_from, tx.now_us),
        "held_step": HELD_STEP_US,
    }


def _lease_of(row: tuple[Any, ...], lane: Lane) -> Lease:
    return Lease(
        hold=Hold(*row[0:4]),
        kind=lane.kind,
        queue=lane.queue,
        priority=lane.priority,
        payload=from_columns(row[5], row[6]) or _NO_PAYLOAD,
        attempt=row[7],
        fence=row[8],
        generation=row[9],
        lease_us=row[10],
        timeout_us=row[11],
        deadline_us=row[12],
        start_within_us=row[13],
        job_id=row[14],
        name=row[15],
        parents=row[16],
        retry=row[17],
        options=row[18],
        initiator=row[19],
        checkpoint=row[20],
        max_attempts=row[21],
    )
