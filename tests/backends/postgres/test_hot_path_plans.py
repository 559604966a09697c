"""How the statements of the hot path find their rows: along the index meant for it, whatever the statistics say."""

from collections.abc import Iterator
from typing import Any

import pytest

from backends.postgres.crew import Watched, Writer, job, nodes, settlings, with_trigger
from perdure.domain.outcome import Failure
from perdure.domain.settlement import Settlement
from perdure.store.ledger import ClaimRequest
from perdure.store.postgres import settling, submission

LATER = Settlement.retry(Failure("ValueError", "boom", None), 60_000_000)
HOT = (
    "submit",
    "submit_alike",
    "submit_one",
    "claim_look",
    "claim_late",
    "claim_heads",
    "claim",
    "settle_end",
    "settle_return",
    "job_start",
)
FOLLOWING = ("job_tally", "children_follow", "children_met", "children_unmet", "joining_apply")
IN_ORDER = {
    "perdure_live_due",
    "perdure_live_ttl",
    "perdure_live_deadline",
    "perdure_definitions_with_depth",
    "perdure_slots_by_time",
    "perdure_breakers_open",
}
"""Indexes of which the first entry is asked for, or which are empty but for a few."""
SMALL = {"perdure_lanes", "perdure_definitions", "perdure_meta"}
QUEUED = """
    INSERT INTO perdure_live (n, organization, lane, state, seq, due_us, queued_us)
    SELECT -n, 'default', (SELECT min(lane) FROM perdure_lanes), 'queued', 1000000 + n, 0, 0
    FROM generate_series(1, {count}) AS n
"""
PENDING = """
    INSERT INTO perdure_live (n, organization, lane, state, due_us, waits)
    SELECT -1000000 - n, 'default', (SELECT min(lane) FROM perdure_lanes), 'pending', 4000000000000000, 0
    FROM generate_series(1, {count}) AS n
"""
JOBS = """
    INSERT INTO perdure_jobs (organization, id, name, policy, state, principal, initiator, created_us, total, open)
    SELECT 'default', n, 'a job', 'fail', 'pending', 'alice', 'alice', 0, 1, 1 FROM generate_series(1, {count}) AS n
"""


@pytest.fixture
def writer(postgres_database: str) -> Iterator[Writer]:
    """A session, and a worker `w` for two kinds."""
    made = Writer(postgres_database)
    made.register(kinds=("work", "more"))
    yield made
    made.close()


def small(writer: Writer) -> None:
    """A table of few rows, whose statistics say so."""
    writer.session.connection.execute("VACUUM ANALYZE")


def empty_by_statistics(writer: Writer) -> None:
    """Statistics of empty tables, and then many rows."""
    writer.session.connection.execute("VACUUM ANALYZE")
    _fill(writer, 100_000)


def unanalyzed(writer: Writer) -> None:
    """Many rows, and no statistics at all."""
    _fill(writer, 100_000)


def analyzed(writer: Writer) -> None:
    """Many rows, and statistics that say so."""
    _fill(writer, 100_000)
    writer.session.connection.execute("VACUUM ANALYZE")


def bloated(writer: Writer) -> None:
    """Few rows in a table that was large, dead entries still in its indexes."""
    _fill(writer, 100_000)
    writer.session.connection.execute("VACUUM ANALYZE")
    writer.session.connection.execute("DELETE FROM perdure_live WHERE n < 0")
    writer.session.connection.execute("ANALYZE")


def _fill(writer: Writer, count: int) -> None:
    writer.submit(writer.tasks(1))
    for statement in (QUEUED, PENDING, JOBS):
        writer.session.connection.execute(statement.format(count=count if statement is not JOBS else 5_000))


@pytest.fixture(params=[small, empty_by_statistics, unanalyzed, analyzed, bloated], ids=lambda each: each.__name__)
def plans(request: pytest.FixtureRequest, writer: Writer) -> dict[str, dict[str, Any]]:
    """The plans of what a few claims and settles ran, in tables as the parameter makes them."""
    request.param(writer)
    graph = {"a": [], "b": [], "c": ["a", "b"]}
    usual, other = (job(writer.ids, graph) for _ in range(2))
    ruled = with_trigger(other.tasks[2], "any_succeeded")
    writer.submit_jobs([usual, other._replace(tasks=(*other.tasks[:2], ruled))])
    writer.submit(writer.tasks(10, priority=9))
    writer.submit(writer.tasks(10, priority=9, kind="more"))
    writer.claim(1)
    tx = Watched(writer.session.connection, writer.session.begin(durable=False))
    submission.submit(tx, writer.tasks(3), writer.lanes)
    submission.submit(tx, [*writer.tasks(2), *writer.tasks(1, kind="more")], writer.lanes)
    submission.submit(tx, writer.tasks(1), writer.lanes)
    leases = writer.claims.claim(tx, [ClaimRequest("w", writer.leases(24))], writer.lanes)[0]
    (*most, last) = leases
    settling.settle(tx, settlings(most))
    settling.settle(tx, settlings([last], LATER))
    made = {name: tx.plan(name) for name in tx.given if name in HOT + FOLLOWING}
    writer.session.roll_back()
    return made


def test_no_statement_of_the_hot_path_reads_a_table_in_full(plans: dict[str, dict[str, Any]]) -> None:
    assert {*HOT, *FOLLOWING} - {"claim_late", "job_start"} <= plans.keys()
    for name, plan in plans.items():
        for node in nodes(plan):
            relation = node.get("Relation Name", "")
            if not relation or node["Node Type"] == "ModifyTable" or relation in SMALL:
                continue
            assert node["Node Type"] in ("Index Scan", "Index Only Scan"), (name, node)
            assert "Index Cond" in node or node["Index Name"] in IN_ORDER, (name, node)


def test_each_row_of_an_unfinished_task_is_found_by_its_number_or_its_place(plans: dict[str, dict[str, Any]]) -> None:
    meant = {
        "claim_heads": {"perdure_live_ready"},
        "claim_late": {"perdure_live_ready"},
        "claim": {"perdure_live_ready", "perdure_live_held", "perdure_live_pkey"},
        "claim_look": {"perdure_live_due", "perdure_live_ttl", "perdure_live_deadline"},
    }
    for name, plan in plans.items():
        found = {
            node["Index Name"]
            for node in nodes(plan)
            if node.get("Relation Name") == "perdure_live" and "Index Name" in node
        }
        assert found <= meant.get(name, {"perdure_live_pkey"}), (name, found)


def test_a_claim_goes_down_an_index_to_its_marks(plans: dict[str, dict[str, Any]]) -> None:
    (ready,) = [node for node in nodes(plans["claim"]) if node.get("Index Name") == "perdure_live_ready"]
    assert "seq >= " in ready["Index Cond"], ready
    assert "lane = " in ready["Index Cond"], ready
    assert not [node for node in nodes(plans["claim_heads"]) if node["Node Type"] == "Sort"]


def test_what_nearly_all_have_in_common_is_asked_once(writer: Writer) -> None:
    """Of the worker of what is settled; that there are no receipts, and of tasks that are new no checkpoints."""
    writer.submit(writer.tasks(40))
    held = writer.claim(20)
    tx = Watched(writer.session.connection, writer.session.begin(durable=False))
    plans = []
    for name, act in (
        ("settle_end", lambda: settling.settle(tx, settlings(held))),
        ("claim", lambda: writer.claims.claim(tx, [ClaimRequest("w", writer.leases(20))], writer.lanes)),
    ):
        tx.connection.execute("SAVEPOINT before")
        act()
        tx.connection.execute("ROLLBACK TO SAVEPOINT before")
        plans.append(tx.plan(name, analyze=True))
    writer.session.roll_back()
    settle, claim = ([node for node in nodes(plan) if "Relation Name" in node] for plan in plans)
    assert sum(each["Actual Loops"] for each in settle if each["Relation Name"] == "perdure_workers") == 1
    assert _pages(settle, "perdure_receipts") <= 2
    assert _pages(claim, "perdure_checkpoints") == 0


def _pages(found: list[dict[str, Any]], table: str) -> int:
    """How many pages were looked at on the way to rows of a table."""
    these = [each for each in found if each["Relation Name"] == table]
    assert these
    return sum(each["Shared Hit Blocks"] + each["Shared Read Blocks"] for each in these)


def test_jobs_are_found_by_number(plans: dict[str, dict[str, Any]]) -> None:
    found = {
        node["Index Name"]
        for plan in plans.values()
        for node in nodes(plan)
        if node.get("Relation Name") == "perdure_jobs" and "Index Name" in node
    }
    assert found <= {"perdure_jobs_pkey"}


def test_children_that_wait_for_nothing_more_join_in_the_statement_that_counts_down(writer: Writer) -> None:
    writer.submit_jobs([job(writer.ids, {"parent": [], **{f"child {n}": ["parent"] for n in range(5)}})])
    leases = writer.claim(1)
    tx = Watched(writer.session.connection, writer.session.begin(durable=False))
    settling.settle(tx, settlings(leases))
    assert tx.given.keys() == {"settle_end", "job_tally", "children_follow"}
    writer.commit(tx)
    assert len(writer.claim(10)) == 5
