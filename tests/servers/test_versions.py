"""Each version of PostgreSQL that is promised: its server takes the schema and every statement, and runs a task."""

from collections.abc import Iterator

import psycopg
import pytest

import perdure
from perdure.settings import Settings
from perdure.store.postgres.statements import STATEMENTS, Statement
from servers.postgres import VERSIONS, NoServer, PostgresServer, running
from skipping import skip

LONG = 60.0
UNPREPARED = ("caller_", "schema_create", "transaction_", "wakeup_listen")
"""How the names of statements begin that no server prepares: those that steer transactions and the session."""


@pytest.fixture(params=VERSIONS, scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer]:
    """A server of each version."""
    try:
        with running(version=request.param) as server:
            yield server
    except NoServer as reason:
        skip(str(reason))


async def test_tasks_run(server: PostgresServer, request: pytest.FixtureRequest) -> None:
    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        version = admin.info.server_version // 10_000
        assert version == request.node.callspec.params["server"]
        admin.execute("CREATE DATABASE runs")
    app = perdure.App(settings=Settings(store=server.url("runs")))

    @app.task("add")
    async def add(left: int, right: int) -> int:
        return left + right

    @app.task("fail", retry=perdure.Retry(2, base=0.01))
    async def fail() -> None:
        raise ValueError("on purpose")

    async with app, app.worker():
        failing = await app.submit("fail")
        handles = await app.submit_many([add.call(n, 1) for n in range(20)])
        assert [await handle.result(LONG) for handle in handles] == [n + 1 for n in range(20)]
        with pytest.raises(perdure.TaskFailed):
            await failing.result(LONG)


def test_every_statement_is_understood(server: PostgresServer) -> None:
    from servers.databases import migrate

    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        admin.execute("CREATE DATABASE statements")
    migrate(server.url("statements"))
    with psycopg.connect(server.url("statements"), autocommit=True) as connection:
        understood = [_prepare(connection, each) for each in STATEMENTS.values() if _is_prepared(each)]
    assert len(understood) > 100


def _is_prepared(statement: Statement) -> bool:
    return statement.clears is None and not statement.name.startswith(UNPREPARED)


def _prepare(connection: psycopg.Connection[tuple[object, ...]], statement: Statement) -> str:
    result = connection.pgconn.prepare(b"", statement.numbered)
    assert result.status == psycopg.pq.ExecStatus.COMMAND_OK, f"{statement.name}: {result.get_error_message()}"
    return statement.name
