"""Behind PgBouncer in transaction mode, where each transaction may get another session of the server."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import perdure
from backends.postgres.opened import one, opened, operation, plain
from perdure.domain.limits import SECOND_US
from perdure.errors import Misuse
from perdure.settings import Settings
from perdure.store.postgres import conversation
from perdure.store.wakeups import Topic
from skipping import skip

if TYPE_CHECKING:
    from servers.databases import Databases
    from servers.pooler import Pooler

LONG = 30.0
FEW = 60


@pytest.fixture(params=["not prepared", "prepared"])
def pooler(request: pytest.FixtureRequest, postgres_databases: "Databases") -> "Pooler":
    """A pooler before the server of the tests."""
    from servers.pooler import PREPARES_SINCE, NoPooler, version

    prepared = request.param == "prepared"
    try:
        if prepared and version() < PREPARES_SINCE:
            pytest.skip("this PgBouncer keeps no prepared statements: 1.21 and later do")
        return postgres_databases.pooler(500 if prepared else 0)
    except NoPooler as reason:
        skip(str(reason))


@pytest.fixture
def prepare(request: pytest.FixtureRequest) -> str:
    """What is to be said of prepared statements."""
    return "on" if "not prepared" not in request.node.callspec.id else "auto"


@pytest.fixture
def pooled(pooler: "Pooler", postgres_database: str) -> str:
    """The way to an empty store through the pooler, which has several sessions with it."""
    pooler.spread(postgres_database)
    return pooler.url(postgres_database)


@pytest.fixture
async def app(pooled: str, postgres_database: str, prepare: str) -> AsyncIterator[perdure.App]:
    """An app through the pooler, which is told of the way past it."""
    app = perdure.App(settings=Settings(store=pooled, hints=postgres_database, prepare=prepare))

    @app.task("add")
    async def add(left: int, right: int) -> int:
        return left + right

    async with app:
        yield app


async def test_tasks_run_and_their_results_are_had(app: perdure.App) -> None:
    async with app.worker(concurrency=20):
        handles = await asyncio.gather(*(app.submit("add", left=n, right=1) for n in range(FEW)))
        results = await asyncio.gather(*(handle.result(LONG) for handle in handles))
    assert results == [n + 1 for n in range(FEW)]


async def test_a_task_of_a_callers_transaction_exists_exactly_if_that_commits(app: perdure.App, pooled: str) -> None:
    async with app.worker(), await psycopg.AsyncConnection.connect(pooled, prepare_threshold=None) as connection:
        async with connection.transaction():
            kept = await app.submit("add", left=1, right=1, connection=connection)
        async with connection.transaction(force_rollback=True):
            gone = await app.submit("add", left=2, right=2, connection=connection)
        assert await kept.result(LONG) == 2
        with pytest.raises(perdure.NotFound):
            await gone.status()


async def test_nothing_is_left_in_a_session(pooled: str, postgres_database: str, prepare: str) -> None:
    async with opened(pooled) as store:
        waiting = store.wakeups.subscribe(Topic.READY)
        for depth in range(1, 20):
            await store.definitions.put("default", "queue", "q", f'{{"depth":{depth}}}', "bob")
            await store.definitions.get("default", "queue", "q")
            assert await waiting.wait(LONG) == Topic.READY
    with plain(postgres_database) as admin:
        sessions = one(admin, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()") - 1
    assert sessions >= 3
    left = list(_in_each_session(pooled, sessions))
    assert len({session for session, *_ in left}) >= 3
    for _, statements, channels, *settings in left:
        assert (statements, channels, settings) == (0, 0, ["0", "0", "on", "on"])


def _in_each_session(pooled: str, sessions: int) -> Iterator[tuple[Any, ...]]:
    query = """
        SELECT
            pg_backend_pid(),
            (SELECT count(*) FROM pg_prepared_statements), (SELECT count(*) FROM pg_listening_channels()),
            current_setting('lock_timeout'), current_setting('statement_timeout'),
            current_setting('synchronous_commit'), current_setting('enable_seqscan')
    """
    with psycopg.connect(pooled, autocommit=True, prepare_threshold=None) as connection:
        for _ in range(2 * sessions):
            row = connection.execute(query).fetchone()
            assert row is not None
            yield row


async def test_hints_arrive_past_the_pooler(
    pooled: str, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "SAFETY_FIRST_US", 3_600 * SECOND_US)
    monkeypatch.setattr(conversation, "SAFETY_LAST_US", 3_600 * SECOND_US)
    monkeypatch.setattr(conversation, "DEAF_EVERY_US", 3_600 * SECOND_US)
    async with opened(pooled, hints=postgres_database) as here, opened(pooled, hints=postgres_database) as there:
        waiting = here.wakeups.subscribe(Topic.READY)
        assert await waiting.wait(LONG) == Topic.READY
        await there.definitions.put("default", "queue", "q", "{}", "bob")
        assert await waiting.wait(LONG) == Topic.READY
        assert here.notices() == []


async def test_what_is_announced_through_the_pooler_is_heard_past_it(
    pooled: str, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "SAFETY_FIRST_US", 3_600 * SECOND_US)
    monkeypatch.setattr(conversation, "SAFETY_LAST_US", 3_600 * SECOND_US)
    async with opened(postgres_database) as here, opened(pooled) as there:
        waiting = here.wakeups.subscribe(Topic.READY)
        assert await waiting.wait(LONG) == Topic.READY
        await there.definitions.put("default", "queue", "q", "{}", "bob")
        assert await waiting.wait(LONG) == Topic.READY


async def test_without_a_way_past_the_pooler_waiters_look_for_themselves_and_that_is_told(pooled: str) -> None:
    async with opened(pooled) as store:
        waiting = store.wakeups.subscribe(Topic.READY)
        for _ in range(3):
            assert await waiting.wait(LONG) == Topic.READY
        assert "PERDURE_HINTS" in store.notices()[0]


async def test_a_way_past_the_pooler_that_leads_elsewhere_is_refused(
    pooled: str, postgres_databases: "Databases"
) -> None:
    other = postgres_databases.take()
    with pytest.raises(Misuse, match="another database"):
        async with opened(pooled, hints=other):
            pass
    postgres_databases.give_back(other)


async def test_a_session_that_ends_behind_the_pooler_costs_a_second_run_and_no_answer(
    pooled: str, postgres_database: str, prepare: str
) -> None:
    runs: list[int] = []

    def apply(tx: Any, items: list[Any]) -> list[Any]:
        runs.append(len(items))
        (backend,) = tx.run("server_facts")[0][:1]
        if len(runs) == 1:
            with plain(postgres_database) as admin:
                admin.execute("SELECT pg_terminate_backend(%s)", [backend])
        tx.value("server_noted")
        return items

    async with opened(pooled, prepare=prepare) as store:
        assert await store.writer.gather(operation(apply), ["x"]) == ["x"]
    assert runs == [1, 1]


async def test_a_store_does_without_any_hints(postgres_database: str) -> None:
    async with opened(postgres_database, hints="off") as here, opened(postgres_database, hints="off") as there:
        waiting = here.wakeups.subscribe(Topic.READY)
        for _ in range(3):
            assert await waiting.wait(LONG) == Topic.READY
        await there.definitions.put("default", "queue", "q", "{}", "bob")
        assert here.notices() == []
        with plain(postgres_database) as admin:
            sessions = (
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen%%'"
            )
            assert one(admin, sessions) == 0
