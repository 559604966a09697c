"""How duties and operators find their rows: along an index, whatever the statistics say."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from backends.postgres.crew import Watched, Writer, nodes, settlings
from perdure.domain import limits
from perdure.domain.attempt import Progress, Renewal, Report
from perdure.domain.outcome import Failure
from perdure.domain.retention import Retention
from perdure.domain.settlement import Settlement
from perdure.domain.states import Reason
from perdure.store.ledger import Cancellation, Redrive
from perdure.store.postgres import renewing
from perdure.store.postgres.statements import STATEMENTS
from perdure.store.relational import cancelling, redriving, reporting, retaining, sweeping
from perdure.store.relational import renewing as reading

FAILED = Settlement.failed(Failure("ValueError", "boom"), Reason.PERMANENT, dead_letters=True)
LARGE = {"perdure_live", "perdure_tasks", "perdure_ends"}
COUNT = 30_000
TASKS = f"""
    INSERT INTO perdure_tasks (
        n, organization, id, lane, payload, encoding, principal, initiator, created_us, execution_limit_us, lease_us,
        max_attempts, max_losses, on_loss
    )
    SELECT -n, 'default', 'filler ' || n, 1, '', 'json', 'a', 'a', 0, 1, 1, 1, 1, 'retry'
    FROM generate_series(1, {COUNT}) AS n
"""
LIVE = f"""
    INSERT INTO perdure_live (n, organization, lane, state, due_us, waits)
    SELECT -n, 'default', 1, 'pending', 4000000000000000, 1 FROM generate_series(1, {COUNT} / 2) AS n
"""
ENDS = f"""
    INSERT INTO perdure_ends (
        n, organization, lane, state, reason, actor, finished_us, generation, failures, losses, fence, due_us
    )
    SELECT -n, 'default', 1, 'succeeded', 'ok', 'a', 4000000000000000, 1, 0, 0, 0, 0
    FROM generate_series({COUNT} / 2 + 1, {COUNT}) AS n
"""


@pytest.fixture
def writer(postgres_database: str) -> Iterator[Writer]:
    """A session, and a worker `w`."""
    made = Writer(postgres_database)
    made.register()
    made.submit(made.tasks(1))
    yield made
    made.close()


def _fill(writer: Writer) -> None:
    for statement in (TASKS, LIVE, ENDS):
        writer.session.connection.execute(statement.encode())


def unanalyzed(writer: Writer) -> None:
    """Many rows, and no statistics at all."""
    _fill(writer)


def empty_by_statistics(writer: Writer) -> None:
    """Statistics of empty tables, and then many rows."""
    writer.session.connection.execute("VACUUM ANALYZE")
    _fill(writer)


def analyzed(writer: Writer) -> None:
    """Many rows, and statistics that say so."""
    _fill(writer)
    writer.session.connection.execute("VACUUM ANALYZE")


@pytest.fixture(params=[unanalyzed, empty_by_statistics, analyzed], ids=lambda each: each.__name__)
def filled(request: pytest.FixtureRequest, writer: Writer) -> Writer:
    """A session of large tables."""
    fill: Callable[[Writer], None] = request.param
    fill(writer)
    return writer


def plans_of(writer: Writer) -> dict[str, dict[str, Any]]:
    """The plans of what duties and operators have run, in a session of the store."""
    writer.submit(writer.tasks(6))
    (first, second, third, fourth, *_) = writer.claim(7)
    writer.settle(settlings([third, fourth], FAILED))
    tx = Watched(writer.session.connection, writer.session.begin(durable=False))
    renewing.renew(tx, [Renewal(first.hold, True)])
    reporting.report(tx, [Report(second.hold, Progress(1, 2, None, None), checkpoint="1")])
    reading.inputs(tx, first.hold)
    ids = [lease.hold.task_id for lease in (first, second, third)]
    cancelling.cancel(tx, [Cancellation("default", id, "bob", Reason.USER, None, None, 1) for id in ids])
    redriving.redrive(tx, [Redrive("default", third.hold.task_id, "bob")])
    redriving.discard(tx, "default", [fourth.hold.task_id], "bob")
    sweeping.promote(tx, 10)
    sweeping.expire(tx, 10)
    sweeping.cascade(tx, 10, limits.CANCEL_GRACE_DEFAULT_US)
    tx.now_us += 1_000_000
    retaining.retain(tx, Retention(keep_us=1), 10)
    made = {name: tx.plan(name) for name in tx.given if STATEMENTS[name].clears is None}
    writer.session.roll_back()
    return made


def test_no_large_table_is_read_in_full(filled: Writer) -> None:
    plans = plans_of(filled)
    assert {"renew", "report_standing", "cancel_look", "redrive_look", "waits_recount", "remove_tasks"} <= plans.keys()
    for name, plan in plans.items():
        for node in nodes(plan):
            if node.get("Relation Name") in LARGE and node["Node Type"] != "ModifyTable":
                assert "Index" in node["Node Type"] or "Bitmap" in node["Node Type"], (name, node)
