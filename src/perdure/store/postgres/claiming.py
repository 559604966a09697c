"""Claiming: which waiting tasks a worker gets now."""

import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import msgspec

from perdure.ambient import Clock, SystemClock
from perdure.domain import limits
from perdure.domain.attempt import Lease
from perdure.store.ledger import ClaimRequest, WorkerOrder
from perdure.store.postgres.claimed_rows import (
    Looked,
    WorkerRow,
    bindings_of,
    guessed,
    lease_from,
    lease_of,
    looked,
    unguessed,
)
from perdure.store.postgres.folding import Folds
from perdure.store.postgres.grants import Catalogue, Fitting
from perdure.store.postgres.heads import Heads, Take
from perdure.store.postgres.marks import Marks
from perdure.store.postgres.passed import Looks, Passed
from perdure.store.postgres.submission import collided
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.ageing import Ageing
from perdure.store.relational.ending import begin
from perdure.store.relational.flow import UNLIMITED, Rooms, rooms_of
from perdure.store.relational.lanes import Lanes
from perdure.store.relational.operation import Lone
from perdure.store.relational.sweeping import sweep_due, sweep_overdue
from perdure.store.relational.transaction import batch
from perdure.store.wakeups import Topic

_decode = msgspec.json.Decoder().decode
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


class _Asked(NamedTuple):
    """What a claim asks that takes its worker's row for `guess`."""

    guess: WorkerRow
    looks: Looks
    below: bool
    """Whether it looks below the marks."""
    stale: bool
    """Whether it looks at all lanes."""
    begun_us: int
    queries: list[tuple[str, dict[str, Any]]]


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
        self._known: dict[str, WorkerRow] = {}
        self._ageing = Ageing()
        self.limited = False
        """Whether a queue or an organization had a limit when that was last looked at."""
        self._guess_again_us = 0
        self._unfolded = False
        """Whether claims that committed by themselves have changed counts since another could fold them."""
        self._using = threading.RLock()
        """Whoever has the turn of the session that claims has this too, unless claims borrow the session of another."""

    def claim(self, tx: Transaction, requests: Sequence[ClaimRequest], lanes: Lanes) -> list[list[Lease]]:
        """Lease tasks to the workers of these requests, one after the other, in the order of their rows' locks."""
        with self._using:
            return self._claim_all(tx, requests)

    def _claim_all(self, tx: Transaction, requests: Sequence[ClaimRequest]) -> list[list[Lease]]:
        answers: list[list[Lease]] = [[] for _ in requests]
        # Another claim of the same worker may have gates, and come to the worker's row then.
        tx.wait_no_more()
        for place in sorted(range(len(requests)), key=lambda place: requests[place].worker_id):
            answers[place] = self._claim(tx, requests[place])
        few = any(len(leases) < len(each.leases) for leases, each in zip(answers, requests, strict=True))
        if self._unfolded or any(answers):
            self._unfolded = False
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
            tx.after_commit(lambda: self._remind_of(begun_us))
        jobs = {row[23] for row in rows if row[23] is not None}
        if jobs:
            tx.run("job_start", batch=batch(sorted(jobs)))
        rooms.spend(tx, [(row[4], row[0], row[1]) for row in rows if row[22] is not None])
        self._begin(tx, request, leases, rows, rooms)
        return [lease_of(row, self._catalogue.lane(tx, row[4])) for row in rows]

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

    def _look(self, tx: Transaction, worker_id: str) -> WorkerRow | None:
        """Lock the worker's row, so that no other claim of it goes on beside this one; and do first what time has
        done.
        """
        looks = Looks(self._due.look(tx), self._overdue.look(tx))
        found = looked(worker_id, tx.run("claim_look", **unguessed(worker_id), **looks.bindings))
        looks.answered()
        if found is None:
            return None
        worker = found.worker
        if worker.due_us is not None:
            sweep_due(tx, limits.SWEEP_MAX_TASKS, looks.due.since_us)
        if worker.overdue_us is not None:
            sweep_overdue(tx, limits.SWEEP_MAX_TASKS, looks.overdue.since_us)
        looks.found(worker.due_us, worker.overdue_us)
        return worker

    def _remind_of(self, begun_us: int) -> None:
        """Something may be there all the same: below the marks, in a lane that is not known yet, or entered late."""
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

    def _remember(self, worker: WorkerRow) -> None:
        if len(self._known) >= KNOWN_MAX:
            self._known.clear()
        self._known[worker.id] = worker

    def _guessed(
        self, tx: Transaction, request: ClaimRequest, leases: Sequence[tuple[str, str]]
    ) -> list[tuple[Any, ...]] | None:
        """Claim in one message as if the worker's row and the lanes were as they were last; `None` where that is not
        known. Where something else was true, it is all run again without guessing.
        """
        asked = self._guess(tx, request, leases)
        if asked is None:
            return None
        answers = tx.run_together(asked.queries)
        asked.looks.answered()
        found = looked(request.worker_id, answers[0])
        if found is None or not found.worker.as_guessed(asked.guess):
            self._guessed_wrong(asked)
            raise collided("a worker's row is not what it was")
        rows = answers[1]
        others = self._learn(tx, asked, found.worker, answers)
        if others and len(rows) < len(leases) and all(row[22] is not None for row in rows):
            fitting = self._catalogue.fitting(tx, found.worker.grants, found.worker.newest_lane)
            rows += self._lease(tx, found.worker, leases[len(rows) :], fitting)
        return rows

    def _guess(
        self, tx: Transaction, request: ClaimRequest, leases: Sequence[tuple[str, str]], *, alone: bool = False
    ) -> "_Asked | None":
        """What to ask as if the worker's row and the lanes were as they were last; `None` where that is not known."""
        guess = self._known.get(request.worker_id)
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
        look = guessed(guess, tx.now_us) if alone else unguessed(guess.id)
        queries = [
            ("claim_look", {**look, **looks.bindings}),
            ("claim", bindings_of(tx, guess, leases, takes, alone=alone)),
        ]
        queries += [("claim_late", {"stretches": batch(below)})] * bool(below)
        queries += [("claim_lanes", {"above": 0})] * stale
        return _Asked(guess, looks, bool(below), stale, begun_us, queries)

    def _guessed_wrong(self, asked: "_Asked") -> None:
        self._known.pop(asked.guess.id, None)
        self._guess_again_us = asked.begun_us + GUESS_AGAIN_US

    def _learn(
        self, tx: Transaction, asked: "_Asked", worker: WorkerRow, answers: Sequence[list[tuple[Any, ...]]]
    ) -> bool:
        """Remember what was found beside the tasks; whether there may be others where nobody has looked."""
        _, rows, *more = answers
        asked.looks.found(None, None)
        self._known[worker.id] = worker
        late = _decode(more.pop(0)[0][0]) if asked.below else []
        if asked.below:
            self._marks.looked(late, asked.begun_us)
        # Advancing past what lies below would hide it.
        self._advance_when_committed(tx, rows, {lane for lane, _ in late})
        return bool(asked.stale and self._catalogue.loaded(more.pop(0), asked.begun_us)) or bool(late)

    def lone(self, requests: Sequence[ClaimRequest], now_us: int) -> Lone | None:
        """How a few tasks are claimed by one message that commits by itself, if the worker's row and the lanes are as
        they were last. `None`: that is not known, or something else is to be done on the way.
        """
        (request,) = requests
        if self._unfolded and self._folds.is_time(awaited=True):
            return None
        if not request.leases or not self._using.acquire(blocking=False):
            return None
        try:
            tx = Transaction(None, now_us)
            asked = self._guess(tx, request, request.leases, alone=True)
        finally:
            self._using.release()
        if asked is None:
            return None

        def answered(answers: Sequence[list[Any]]) -> tuple[list[Lease] | None, int | None]:
            found = looked(request.worker_id, answers[0])
            if not self._using.acquire(blocking=False):
                # They are leased all the same, and the next claim of these ids gets them.
                return None, None
            try:
                return self._came(tx, asked, found, answers), None if found is None else found.server_us
            finally:
                self._using.release()

        return Lone([(name, {**bindings, "now": now_us}) for name, bindings in asked.queries], answered, Topic(0))

    def _came(
        self, tx: Transaction, asked: "_Asked", found: Looked | None, answers: Sequence[list[tuple[Any, ...]]]
    ) -> list[Lease] | None:
        """The leases of a claim that has committed by itself; `None` where it has to be made in another way."""
        asked.looks.answered()
        if found is None or not found.as_guessed:
            self._guessed_wrong(asked)
            return None
        rows, wanted = answers[1], asked.queries[1][1]["want"]
        # None is leased where one of them needs more than this, and one that is repeated may.
        if any(row[0] is None or row[22] is None or not self._catalogue.knows(row[4]) for row in rows):
            return None
        others = self._learn(tx, asked, found.worker, answers)
        tx.committed()
        self._unfolded = self._unfolded or bool(rows)
        if others and len(rows) < wanted:
            if not rows:
                return None
            self._remind(0)
        elif len(rows) < wanted:
            self._remind_of(asked.begun_us)
        return [lease_of(row, self._catalogue.lane(tx, row[4])) for row in rows]

    def _advance_when_committed(
        self, tx: Transaction, rows: Sequence[tuple[Any, ...]], but: Collection[int] = ()
    ) -> None:
        picked = [(row[4], row[22]) for row in rows if row[22] is not None and row[4] not in but]
        tx.after_commit(lambda: self._marks.advance(picked))

    def _lease(
        self,
        tx: Transaction,
        worker: WorkerRow,
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
            got = lease_from(tx, worker, leases[len(rows) :], takes)
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
