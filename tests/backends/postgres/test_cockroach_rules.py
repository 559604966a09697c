"""What is said to CockroachDB, held against what its makers document; never run on a CockroachDB server."""

import collections
import contextlib

import pytest

import perdure
from backends.postgres.cockroach import RULES, broken, schema_of
from perdure.settings import Settings
from perdure.store.postgres.dialects import COCKROACHDB, POSTGRES
from perdure.store.postgres.schema import known_steps
from perdure.store.postgres.statements import STATEMENTS
from perdure.wiring import open_rows
from servers.postgres import NoServer, running
from skipping import skip

SCHEMA = schema_of("\n".join([*(step.sql for step in known_steps()), STATEMENTS["schema_create"].text.decode()]))

EXAMPLES = {
    "a table is written once": (
        "WITH gone AS (DELETE FROM perdure_live WHERE n = 1) UPDATE perdure_live SET seq = 1 WHERE n = 2",
        "WITH gone AS (DELETE FROM perdure_live WHERE n = 1) UPDATE perdure_ends SET due_us = 1 WHERE n = 2",
    ),
    "the order of NULL is written": (
        "SELECT n FROM perdure_live WHERE seq > 1 OR n > 1 ORDER BY seq",
        "SELECT n FROM perdure_live WHERE state = 'queued' AND lane = 1 ORDER BY lane, seq, due_us NULLS LAST, n",
    ),
    "nobody listens": ("LISTEN perdure", "SELECT 1"),
    "no advisory locks": ("SELECT pg_try_advisory_xact_lock(1)", "SELECT 1 FOR UPDATE"),
    "functions that it has": ("SELECT pg_notify('a', 'b')", "SELECT count(*) FROM perdure_live"),
    "types that it has": ("SELECT 1::xid8", "SELECT 1::bigint"),
    "no parameters of storage": ("CREATE TABLE a (b bigint) WITH (fillfactor = 80)", "CREATE TABLE a (b bigint)"),
    "text is compared by bytes": ('CREATE TABLE a (b text COLLATE "C")', "CREATE TABLE a (b text)"),
    "no foreign settings": (
        "SELECT set_config('jit', 'off', true)",
        "SELECT set_config('lock_timeout', '1s', true)",
    ),
    "no system columns": ("SELECT ctid FROM perdure_live", "SELECT n FROM perdure_live"),
    "no table locks and no MERGE": ("LOCK TABLE perdure_live", "SELECT n FROM perdure_live FOR UPDATE"),
}
"""For each rule, a statement that breaks it and one that does not."""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_each_rule_finds_what_breaks_it_and_nothing_else(rule) -> None:
    breaks, keeps = EXAMPLES[rule.name]
    assert [name for name, _ in broken(breaks, SCHEMA)] == [rule.name]
    assert broken(keeps, SCHEMA) == []


def test_no_statement_breaks_a_rule() -> None:
    found = [
        f"{name}: {what}"
        for name, statement in COCKROACHDB.statements.items()
        if statement.clears is None
        for _, what in broken(statement.numbered.decode(), SCHEMA)
    ]
    assert found == [], "CockroachDB does not do that; say it otherwise (NULLS LAST is written, for one)"
    assert len(COCKROACHDB.statements) > len(STATEMENTS) - 25


@pytest.mark.parametrize("step", known_steps(), ids=lambda step: step.name)
def test_no_step_of_the_schema_breaks_a_rule(step) -> None:
    assert broken(COCKROACHDB.step(step.sql), SCHEMA) == []


def test_a_postgresql_server_is_told_the_schema_as_it_is_written() -> None:
    assert [POSTGRES.step(step.sql) for step in known_steps()] == [step.sql for step in known_steps()]
    assert any(broken(step.sql, SCHEMA) for step in known_steps())


def test_rows_of_a_store_there_are_not_copied() -> None:
    """It is refused before anybody connects."""
    with pytest.raises(perdure.Misuse, match="does not know CockroachDB"):
        open_rows("cockroachdb://me@127.0.0.1:1/shop")


async def test_nothing_that_a_server_hears_breaks_a_rule() -> None:
    """The schema is made, tasks and a job run: all that reaches the server is looked at."""
    with contextlib.ExitStack() as stack:
        try:
            server = stack.enter_context(running(log_statement="all"))
        except NoServer as reason:
            skip(str(reason))
        server.lines = collections.deque()
        await _live(server.url("postgres").replace("postgresql:", "cockroachdb:"))
        heard = _statements("\n".join(server.lines))
    assert len(heard) > 30
    assert [(text[:200], what) for text in heard for what in broken(text, SCHEMA)] == []


async def _live(url: str) -> None:
    app = perdure.App(settings=Settings(store=url))

    @app.task("add")
    async def add(left: int, right: int, *, ctx: perdure.Context) -> int:
        await ctx.part({"sum": left}, key="one", final=True)
        return left + right

    @app.task("fail", retry=perdure.Retry(2, base=0.01))
    async def fail() -> None:
        raise ValueError("on purpose")

    async with app, app.worker():
        with app.job("pair") as job:
            first = job.add(add, 1, 2)
            job.add(add, 3, right=first.result, after=[first])
        submitted = await job.submit()
        failing = await app.submit("fail")
        later = await app.submit(add.call(1, 1), delay=60)
        await later.cancel()
        assert await (await app.submit("add", left=1, right=1)).result(60) == 2
        with pytest.raises(perdure.TaskFailed):
            await failing.result(60)
        await submitted.result(60)


def _statements(log: str) -> list[str]:
    """What a server's log says it was asked."""
    heard: list[str] = []
    for line in log.splitlines():
        _, found, text = line.partition("LOG:  ")
        if found and (text.startswith(("statement: ", "execute "))):
            heard.append(text.partition(": ")[2])
        elif not found and line.startswith("\t") and heard:
            heard[-1] += "\n" + line.strip("\t")
        elif found:
            heard.append("")
    return [text for text in heard if text and not text.startswith(("DISCARD", "SHOW"))]
