"""Many writers do whatever can be done, all at once: nothing contradicts itself afterwards, and all of it ends."""

import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from backends.postgres.crew import DONE, Writer, job, settlings, with_options, with_trigger
from backends.postgres.racing import crew, run
from conformance import postgres_rows
from perdure.domain import limits
from perdure.domain.attempt import Lease, Progress, Renewal, Report
from perdure.domain.gate import Gate, GateSort, WhenFull, in_order
from perdure.domain.outcome import Failure
from perdure.domain.retention import Retention
from perdure.domain.settlement import Settlement
from perdure.domain.states import Reason
from perdure.domain.task import TRIGGERS
from perdure.errors import NotFound
from perdure.store.ledger import Cancellation, Redrive, SettleAnswer
from perdure.store.postgres import job_submission, renewing, settling, submission
from perdure.store.postgres.connecting import ISOLATIONS
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational import cancelling, redriving, reporting, retaining, sweeping

WRITERS = 6
STEPS = 120
FAILED = Settlement.failed(Failure("ValueError", "boom"), Reason.PERMANENT, dead_letters=False)
ENDS = (DONE, DONE, FAILED, FAILED, Settlement.handed_back(), Settlement.snoozed(1))


@pytest.fixture(params=ISOLATIONS)
def writers(request: pytest.FixtureRequest, postgres_database: str) -> Iterator[list[Writer]]:
    """Sessions of one database."""
    with crew(postgres_database, request.param, WRITERS) as made:
        yield made


class Somebody:
    """One who does things at random, with what all of them know."""

    def __init__(self, writer: Writer, seed: int, known: list[str], jobs: list[str]) -> None:
        self._writer = writer
        self._chance = random.Random(seed)
        self._known = known
        self._jobs = jobs
        self._leases: list[Lease] = []
        self._acts: list[Callable[[Transaction], Any]] = [
            *[self._submit_job, self._claim, self._settle] * 3,
            *[self._redrive, self._cascade] * 2,
            *[
                self._submit,
                self._renew,
                self._report,
                self._cancel,
                self._stop,
                self._sweep,
                self._retain,
                self._postpone,
            ],
        ]

    def live(self) -> None:
        """Do this and that."""
        for _ in range(STEPS):
            run(self._writer, self._chance.choice(self._acts))

    def _some(self, count: int = 3) -> list[str]:
        return self._chance.sample(self._known, min(count, len(self._known)))

    def _gates(self) -> str | None:
        """The options of a task, with gates that it shares with others."""
        key = str(self._chance.randrange(3))
        gates = [
            Gate(GateSort.ORDER, "work by account", key, 1),
            Gate(GateSort.CONCURRENCY, "work by customer", key, 2),
            Gate(GateSort.CONCURRENCY, "work", "", 1, None, WhenFull.CANCEL_NEWEST),
            Gate(GateSort.CONCURRENCY, "work by region", key, 2, None, WhenFull.CANCEL_RUNNING),
        ]
        some = self._chance.sample(gates[: self._chance.choice((2, 2, 4))], self._chance.randrange(3))
        return msgspec.json.encode({"gates": in_order(some)}).decode() if some else None

    def _submit(self, tx: Transaction) -> None:
        key = str(self._chance.randrange(20))
        tasks = self._writer.tasks(2, options=self._gates()) + self._writer.tasks(
            1, idempotency_key=key, request_hash="h"
        )
        self._known += [each.id for each in submission.submit(tx, tasks, self._writer.lanes) if hasattr(each, "id")]

    def _submit_job(self, tx: Transaction) -> None:
        names = [f"t{number}" for number in range(self._chance.randrange(2, 9))]
        graph = {
            name: self._chance.sample(names[:at], min(at, self._chance.randrange(4))) for at, name in enumerate(names)
        }
        built = job(self._writer.ids, graph)
        built = built._replace(
            tasks=tuple(
                with_options(with_trigger(each, self._chance.choice(TRIGGERS)), self._gates()) for each in built.tasks
            )
        )
        job_submission.submit_jobs(tx, [built], self._writer.lanes)
        self._known += [each.id for each in built.tasks]
        self._jobs.append(built.id)

    def _claim(self, tx: Transaction) -> None:
        leases = self._writer.claim_in(tx, self._chance.randrange(1, 6))
        tx.after_commit(lambda: self._leases.extend(leases))

    def _settle(self, tx: Transaction) -> None:
        some = self._chance.sample(self._leases, min(5, len(self._leases)))
        ends = [each for lease in some for each in settlings([lease], self._chance.choice(ENDS))]
        assert all(each.answer is SettleAnswer.APPLIED for each in settling.settle(tx, ends))
        tx.after_commit(lambda: [self._leases.remove(lease) for lease in some])

    def _renew(self, tx: Transaction) -> None:
        renewing.renew(tx, [Renewal(lease.hold, self._chance.random() < 0.5) for lease in self._leases])

    def _report(self, tx: Transaction) -> None:
        reporting.report(tx, [Report(lease.hold, Progress(1, 2, None, None)) for lease in self._leases[:3]])

    def _cancel(self, tx: Transaction) -> None:
        grace = limits.CANCEL_GRACE_DEFAULT_US
        asked = [Cancellation("default", id, "bob", Reason.USER, None, None, grace) for id in self._some()]
        cancelling.cancel(tx, asked)

    def _stop(self, tx: Transaction) -> None:
        if self._jobs and self._chance.random() < 0.2:
            with suppress(NotFound):
                cancelling.cancel_job(tx, "default", self._chance.choice(self._jobs), "bob", None)

    def _redrive(self, tx: Transaction) -> None:
        redriving.redrive(tx, [Redrive("default", id, "bob") for id in self._some(12)])

    def _cascade(self, tx: Transaction) -> None:
        sweeping.cascade(tx, self._chance.randrange(1, 20), limits.CANCEL_GRACE_DEFAULT_US)

    def _sweep(self, tx: Transaction) -> None:
        sweeping.promote(tx, 50)
        sweeping.expire(tx, 50)

    def _retain(self, tx: Transaction) -> None:
        if self._chance.random() < 0.1:
            retaining.retain(tx, Retention(keep_us=500_000), 5)

    def _postpone(self, tx: Transaction) -> None:
        for id in self._some(1):
            cancelling.postpone(tx, "default", id, tx.now_us + 1_000)

    def finish(self) -> None:
        """End whatever is held."""
        leases, self._leases = self._leases, []
        run(self._writer, lambda tx: settling.settle(tx, settlings(leases)))


def drain(writer: Writer) -> None:
    """Work until nothing is left."""
    while True:
        run(writer, lambda tx: sweeping.promote(tx, 1_000))
        more = run(writer, lambda tx: sweeping.cascade(tx, 1_000, limits.CANCEL_GRACE_DEFAULT_US)).more
        leases = writer.claim(1_000)
        if leases:
            writer.settle(settlings(leases))
        elif not more:
            return


@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_done_at_once_ends_and_contradicts_nothing(
    writers: list[Writer], postgres_database: str, seed: int
) -> None:
    known: list[str] = []
    jobs: list[str] = []
    crowd = [Somebody(writer, seed * WRITERS + number, known, jobs) for number, writer in enumerate(writers)]
    with ThreadPoolExecutor(WRITERS) as pool:
        for each in [pool.submit(somebody.live) for somebody in crowd]:
            each.result(120)
    assert not postgres_rows.contradictions(postgres_database)
    for somebody in crowd:
        somebody.finish()
    drain(writers[0])
    assert not postgres_rows.contradictions(postgres_database)
    with writers[0].transaction() as tx:
        left = tx.connection.execute("SELECT state, waits, job FROM perdure_live").fetchall()  # type: ignore[attr-defined]
        open_jobs = tx.connection.execute("SELECT j FROM perdure_jobs WHERE open > 0").fetchall()  # type: ignore[attr-defined]
    assert (left, open_jobs) == ([], [])
