"""Several sessions at several gates at once: who has gates waits for no others, so no two wait for each other."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest
from psycopg import errors

from backends.postgres.crew import Writer, settlings
from backends.postgres.racing import crew, run
from conformance import postgres_rows
from perdure.domain.attempt import Lease
from perdure.domain.gate import Gate, GateSort, in_order
from perdure.domain.settlement import Settlement
from perdure.domain.task import Task
from perdure.store.postgres import settling, submission
from perdure.store.postgres.connecting import ISOLATIONS
from perdure.store.postgres.transaction import Reached, Transaction
from perdure.store.relational import sweeping

WRITERS = 5
SECONDS = 5.0
PATIENCE_SECONDS = 60
KEYS = 3
GATES = (
    Gate(GateSort.ORDER, "work by account", "", 1),
    Gate(GateSort.FAIR, "work by customer (default, 4)", "", 1),
    Gate(GateSort.CONCURRENCY, "all by region", "", 2),
    Gate(GateSort.CONCURRENCY, "work by customer", "", 2),
    Gate(GateSort.RATE, "work by region", "", 4, 20_000),
)


def options(gates: list[Gate]) -> str:
    """The options of a task with these gates."""
    return msgspec.json.encode({"gates": in_order(gates)}).decode()


@pytest.fixture(params=ISOLATIONS)
def writers(request: pytest.FixtureRequest, postgres_database: str) -> Iterator[list[Writer]]:
    """Sessions of one database, each with a worker of its own."""
    with crew(postgres_database, request.param, WRITERS) as made:
        for place, writer in enumerate(made):
            writer.register(f"w{place}")
        # Whoever makes a gate that another is about to make waits for that one, whatever he has already.
        for key in range(KEYS):
            made[0].submit(made[0].tasks(1, options=options([each._replace(key=str(key)) for each in GATES])))
        yield made


class Somebody:
    """One session that submits, claims, settles and promotes."""

    def __init__(self, writer: Writer, worker: str, seed: int) -> None:
        self._writer = writer
        self._worker = worker
        self._chance = random.Random(seed)
        self._leases: list[Lease] = []
        self.collisions: Counter[str] = Counter()

    def _tasks(self) -> list[Task]:
        return [self._writer.tasks(1, options=self._options())[0] for _ in range(self._chance.randrange(1, 5))]

    def _options(self) -> str:
        gates = [each._replace(key=str(self._chance.randrange(KEYS))) for each in GATES]
        chosen = self._chance.sample(gates, self._chance.randrange(1, 4))
        return options(chosen)

    def submit(self, tx: Transaction) -> None:
        """Some tasks."""
        submission.submit(tx, self._tasks(), self._writer.lanes)

    def claim(self, tx: Transaction) -> None:
        """Some of them."""
        leases = self._writer.claim_in(tx, self._chance.randrange(1, 9), self._worker)
        tx.after_commit(lambda: self._leases.extend(leases))

    def settle(self, tx: Transaction) -> None:
        """What is held: it ends, or comes back; and new tasks come with it, as in a flush."""
        back = Settlement.handed_back()
        ends = [settlings([lease], *([back] if self._chance.random() < 0.2 else []))[0] for lease in self._leases]
        settling.settle(tx, ends)
        if self._chance.random() < 0.5:
            submission.submit(tx, self._tasks(), self._writer.lanes)
        tx.after_commit(self._leases.clear)

    def promote(self, tx: Transaction) -> None:
        """What is due joins, and whose turn it is at a rate."""
        sweeping.promote(tx, 100)

    def _collided(self, error: Exception) -> None:
        self.collisions[type(error).__name__] += 1

    def live(self, until: float) -> None:
        """Do these things, in any order."""
        acts = [self.submit, self.claim, self.claim, self.settle, self.settle, self.promote]
        while time.monotonic() < until:
            run(self._writer, self._chance.choice(acts), self._collided)


def test_nobody_waits_for_who_waits_for_him(writers: list[Writer], postgres_database: str) -> None:
    crowd = [Somebody(writer, f"w{seed}", seed) for seed, writer in enumerate(writers)]
    until = time.monotonic() + SECONDS
    with ThreadPoolExecutor(WRITERS) as pool:
        for done in [pool.submit(each.live, until) for each in crowd]:
            done.result(PATIENCE_SECONDS)
    assert not postgres_rows.contradictions(postgres_database)
    collisions = sum((each.collisions for each in crowd), Counter())
    assert collisions[Reached.__name__] > 0, "they came to the same gates"
    assert collisions[errors.DeadlockDetected.__name__] == 0, collisions
