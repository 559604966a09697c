"""Tasks of two kinds whose keys take turns and that start at two rates, all at once with the duty that lets them join.

Gates are locked more than once in a transaction: whose turn it is at one may have to pass others. What somebody else
has then is not waited for: the transaction is run again, and begins with all of these.
"""

import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import psycopg
import pytest

from backends.postgres.crew import Writer, settlings
from backends.postgres.racing import crew, run
from backends.postgres.starts import exceeded
from conformance import postgres_rows
from perdure.domain.attempt import Lease
from perdure.domain.gate import Gate, GateSort, in_order
from perdure.domain.settlement import Settlement
from perdure.store.postgres import settling, submission
from perdure.store.postgres.connecting import ISOLATIONS
from perdure.store.postgres.transaction import Reached, Transaction
from perdure.store.relational import sweeping
from perdure.store.relational.transaction import batch

KINDS = ("work", "send")
WRITERS = 5
SECONDS = 6.0
PERIOD_US = 30_000
RATE = 4
"""Starts in that time, for each key."""
PATIENCE_SECONDS = 90


@pytest.fixture(params=ISOLATIONS)
def writers(request: pytest.FixtureRequest, postgres_database: str) -> Iterator[list[Writer]]:
    """Sessions of one database, and a worker for both kinds."""
    with crew(postgres_database, request.param, WRITERS) as made:
        made[0].register(kinds=KINDS)
        yield made


class Somebody:
    """One session that does some things over and over."""

    def __init__(self, writer: Writer, seed: int) -> None:
        self.writer = writer
        self._chance = random.Random(seed)
        self._leases: list[Lease] = []

    def submit(self, tx: Transaction) -> None:
        """Some tasks of both kinds."""
        tasks = [
            self.writer.tasks(1, kind=self._chance.choice(KINDS), options=self._gates())[0]
            for _ in range(self._chance.randrange(1, 6))
        ]
        submission.submit(tx, tasks, self.writer.lanes)

    def _gates(self) -> str:
        key, account, region = (str(self._chance.randrange(3)) for _ in range(3))
        gates = [
            Gate(GateSort.FAIR, f"{self._chance.choice(KINDS)} by customer (default, 4)", key, 1),
            Gate(GateSort.RATE, "all by account", account, RATE, PERIOD_US),
            Gate(GateSort.RATE, "all by region", region, RATE, PERIOD_US),
        ]
        return msgspec.json.encode({"gates": in_order(gates)}).decode()

    def claim(self, tx: Transaction) -> None:
        """Some of both kinds."""
        leases = self.writer.claim_in(tx, self._chance.randrange(1, 9))
        tx.after_commit(lambda: self._leases.extend(leases))

    def settle(self, tx: Transaction) -> None:
        """What is held: it ends, or comes back."""
        leases, back = self._leases, Settlement.handed_back()
        ends = [
            each for lease in leases for each in settlings([lease], *([back] if self._chance.random() < 0.2 else []))
        ]
        settling.settle(tx, ends)
        tx.after_commit(leases.clear)

    def promote(self, tx: Transaction) -> None:
        """What is due joins, and whose turn it is at a rate."""
        sweeping.promote(tx, 100)

    def live(self, until: float, acts: list[Callable[[Transaction], Any]]) -> None:
        """Do these things, in any order."""
        while time.monotonic() < until:
            run(self.writer, self._chance.choice(acts))


def test_no_rate_is_exceeded_no_turn_is_lost_and_all_go_on(writers: list[Writer], postgres_database: str) -> None:
    crowd = [Somebody(writer, seed) for seed, writer in enumerate(writers)]
    until = time.monotonic() + SECONDS
    with ThreadPoolExecutor(WRITERS) as pool:
        acts = [[each.submit, each.claim, each.settle] for each in crowd[:3]]
        acts += [[each.promote] for each in crowd[3:]]
        for done in [pool.submit(each.live, until, mine) for each, mine in zip(crowd, acts, strict=True)]:
            done.result(PATIENCE_SECONDS)
    assert not postgres_rows.contradictions(postgres_database)
    _drain(crowd, postgres_database)
    assert not postgres_rows.contradictions(postgres_database)
    with writers[0].transaction() as tx:
        (starts,) = tx.connection.execute("SELECT count(*) FROM perdure_attempts").fetchone()
        too_early = exceeded(tx.connection, RATE, PERIOD_US)
    assert starts > 10 * RATE, "there was something to see"
    assert not too_early


def test_a_claim_that_has_its_workers_row_waits_for_no_gate(writers: list[Writer]) -> None:
    gates = [Gate(GateSort.FAIR, "work by customer (default, 4)", "acme", 1)]
    options = msgspec.json.encode({"gates": gates}).decode()
    writers[0].submit(writers[0].tasks(2, options=options))
    with writers[0].transaction() as other:
        other.begin_with(())
        found = other.connection.execute("SELECT gate FROM perdure_gates").fetchall()
        other.run("gate_take", batch=batch([gate for (gate,) in found]))
        with writers[1].transaction() as tx:
            tx.begin_with(())
            with pytest.raises(Reached) as caught:
                writers[1].claim_in(tx, 1)
        assert {*caught.value.gates} == {gate for (gate,) in found}


def _drain(crowd: list[Somebody], url: str) -> None:
    """Work until nothing is left; what nobody's turn comes for is left for ever."""
    until = time.monotonic() + PATIENCE_SECONDS
    with psycopg.connect(url, autocommit=True) as look:
        while (left := look.execute("SELECT state, count(*) FROM perdure_live GROUP BY state").fetchall()) != []:
            assert time.monotonic() < until, left
            for somebody in crowd:
                for act in (somebody.promote, somebody.claim, somebody.settle):
                    run(somebody.writer, act)
