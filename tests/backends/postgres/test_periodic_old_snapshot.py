"""Somebody reads for hours: what runs now and then reads what lives and a little more, however much has died."""

import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from importlib import import_module
from typing import Any

import psycopg
import pytest

from backends.postgres.crew import ids, job, nodes, settlings, task
from conformance.stores import ManualClock
from perdure.domain.limits import SECOND_US
from perdure.domain.outcome import Failure
from perdure.domain.retention import Retention
from perdure.domain.settlement import Settlement
from perdure.store.ledger import ClaimRequest, WorkerInfo
from perdure.store.postgres.marks import FRONT, LAST, LINE
from perdure.store.postgres.statements import STATEMENTS
from perdure.store.postgres.store import PostgresStore
from perdure.store.postgres.transaction import Transaction
from perdure.store.relational.transaction import batch

ROUNDS = 12
EACH = 300
SPARE_PAGES = 60
"""Beyond twice of what it reads in a fresh store: what has died in the last second, and counters."""
DUTIES = ("cascade", "expire", "fire_schedules", "lose", "promote", "retain", "unroutable")
BY_NUMBER = {"settle", "suspend_losses", "losses_suspended_until", "now_us"}
"""What duties ask beside: it finds the rows that it is given, or reads one row of a small table."""
LATER = Settlement.retry(Failure("ValueError", "boom"), SECOND_US)
RETENTION = Retention(keep_us=3_600 * SECOND_US)
FROM_THE_BEGINNING: dict[str, dict[str, Any]] = {
    "due_next": {"since": 0},
    "overdue_next": {"since": 0, "until": LAST},
    "claim_late": {"stretches": batch([(1, FRONT, LINE - 1), (1, LINE, LAST)])},
}
"""Statements that read all that has died."""


class Periodic:
    """A store, what is done in it now and then, and how many pages that reads."""

    def __init__(self, store: PostgresStore, clock: ManualClock, url: str, patch: pytest.MonkeyPatch) -> None:
        self.store, self.clock, self.ids = store, clock, ids()
        self._url = url
        self._given: dict[str, dict[str, Any]] = {}
        self._watch(patch)
        ledger, views = store.ledger, store.views
        self.verbs: dict[str, Callable[[], Awaitable[Any]]] = {
            "claim": self.one,
            "promote": lambda: ledger.promote(100),
            "expire": lambda: ledger.expire(100),
            "cascade": lambda: ledger.cascade(100),
            "fail_unroutable": lambda: ledger.fail_unroutable(60 * SECOND_US, 60 * SECOND_US, 100),
            "find_doubtful": lambda: ledger.find_doubtful(100),
            "holding": ledger.holding,
            "retain": lambda: ledger.retain(RETENTION, 100),
            "control": lambda: ledger.control("w"),
            "orders": lambda: ledger.orders(["w"]),
            "heartbeat": lambda: ledger.heartbeat("w", 100_000),
            "overview": lambda: views.overview("default"),
            "queues": lambda: views.queues("default"),
            "workers": lambda: views.workers("default", None),
        }

    def _watch(self, patch: pytest.MonkeyPatch) -> None:
        given, run, together = self._given, Transaction.run, Transaction.run_together

        def watched(tx: Transaction, name: str, /, **bindings: Any) -> Any:
            staged = {stage: batch(tx.staged(stage)) for stage in STATEMENTS[name].reads}
            given[name] = {**bindings, **staged, "now": tx.now_us}
            return run(tx, name, **bindings)

        def watched_together(tx: Transaction, named: Any) -> Any:
            given.update({name: {**bindings, "now": tx.now_us} for name, bindings in named})
            return together(tx, named)

        patch.setattr(Transaction, "run", watched)
        patch.setattr(Transaction, "run_together", watched_together)

    async def claim(self, count: int) -> list[Any]:
        leases = [(self.ids.new(), self.ids.token()) for _ in range(count)]
        return await self.store.ledger.claim(ClaimRequest("w", leases))

    async def one(self) -> None:
        """Claim a task and end it."""
        await self.store.ledger.settle(settlings(await self.claim(1)))

    async def submit(self, count: int, **given: Any) -> None:
        await self.store.ledger.submit([task(self.ids.new(), **given) for _ in range(count)])

    async def all(self) -> None:
        """Do everything once."""
        for verb in self.verbs.values():
            await verb()

    async def pages(self) -> dict[str, int]:
        """How many pages each statement of each verb reads, by both names."""
        await self.all()
        self.clock.advance(SECOND_US)
        await self.all()
        found: dict[str, int] = {}
        for name, verb in self.verbs.items():
            self._given.clear()
            await verb()
            for statement, bindings in self._given.items():
                if STATEMENTS[statement].clears is None:
                    found[f"{name}: {statement}"] = self.pages_of(statement, bindings)
        return found

    def pages_of(self, name: str, bindings: dict[str, Any]) -> int:
        """How many pages a statement reads, which is undone."""
        with psycopg.connect(self._url) as connection:
            connection.execute(STATEMENTS["writing_by_index"].text, {"local": True})
            text = psycopg.ClientCursor(connection).mogrify(STATEMENTS[name].text, bindings)
            ((plan,),) = connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {text}".encode()).fetchall()
            connection.rollback()
        (top, *_) = nodes(plan[0]["Plan"])
        return int(top["Shared Hit Blocks"]) + int(top["Shared Read Blocks"])

    async def churn(self) -> None:
        """Let many tasks pass through every state, and leave none."""
        ledger = self.store.ledger
        for _ in range(ROUNDS):
            await self.submit(EACH, ttl_us=10_000 * SECOND_US)
            await self.submit(EACH, ttl_us=SECOND_US)
            await ledger.submit_jobs([job(self.ids, {"a": [], "b": ["a"]}) for _ in range(EACH // 10)])
            for settlement in (LATER, Settlement.handed_back()):
                await ledger.settle(settlings(await self.claim(EACH), settlement))
                self.clock.advance(SECOND_US // 2)
                await self.store.views.overview("default")
            self.clock.advance(2 * SECOND_US)
            for _ in range(4):
                await ledger.promote(1_000)
                await ledger.expire(1_000)
                await ledger.settle(settlings(await self.claim(1_000)))
                await ledger.cascade(1_000)
            await self.store.views.overview("default")
            await ledger.heartbeat("w", 100_000)
        self.clock.advance(2 * SECOND_US)


@pytest.fixture
async def periodic(postgres_database: str, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Periodic]:
    """A store with a worker `w`. Its memory knows no other time than the test's."""
    clock = ManualClock()
    for module in ("ledger", "views"):
        monkeypatch.setattr(f"perdure.store.postgres.{module}.SystemClock", lambda: clock)
    store = await PostgresStore.open(postgres_database, clock=clock, inline=True)
    made = Periodic(store, clock, postgres_database, monkeypatch)
    info = WorkerInfo("w", "w", "host", 1, "1", "build", ("work",), ("default",), (), (), 100_000)
    await store.ledger.register(info)
    yield made
    await store.close()


@pytest.fixture
def reader(postgres_database: str) -> Iterator[psycopg.Connection[Any]]:
    """A snapshot that is held from now on."""
    with psycopg.connect(postgres_database) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM perdure_live")
        yield connection


async def test_what_runs_now_and_then_stays_level_while_a_snapshot_is_held(
    periodic: Periodic, reader: psycopg.Connection[Any]
) -> None:
    await periodic.submit(20)
    fresh = await periodic.pages()
    await periodic.churn()
    await periodic.submit(20)
    after = await periodic.pages()
    grown = {
        name: (fresh.get(name, 0), pages)
        for name, pages in after.items()
        if pages > 2 * fresh.get(name, 0) + SPARE_PAGES
    }
    assert grown == {}, "it reads what has died"
    assert {name.partition(": ")[0] for name in after} == periodic.verbs.keys()
    dead = {name: periodic.pages_of(name, bindings) for name, bindings in FROM_THE_BEGINNING.items()}
    assert min(dead.values()) > 2 * SPARE_PAGES, f"{dead}: the dead do not show: this test shows nothing"


def test_every_duty_is_looked_at(periodic: Periodic) -> None:
    asked: set[str] = set()
    for duty in DUTIES:
        asked.update(re.findall(r"self\._ledger\.(\w+)", inspect.getsource(import_module(f"perdure.engine.{duty}"))))
    assert asked, "duties ask in another way"
    assert asked - BY_NUMBER <= periodic.verbs.keys(), "measure how many pages it reads under an old snapshot, too"
