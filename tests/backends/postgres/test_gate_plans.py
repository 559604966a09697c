"""How the statements about gates and about who is next find their rows: along an index, whatever the statistics say."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from backends.postgres.crew import Writer, nodes
from perdure.store.postgres.statements import STATEMENTS

NAMES = sorted(
    name
    for name, statement in STATEMENTS.items()
    if name.startswith(("flow_", "gate_", "joining_", "slot_")) and statement.clears is None
)
BY_PLACE = {
    "slot_next": "perdure_slots_by_time",
    "gate_remove": "perdure_gates_by_use",
}
"""Statements that ask for the first entries of an index."""
SMALL = {"perdure_lanes", "perdure_definitions", "perdure_counts", "perdure_count_changes", "perdure_breakers"}
MANY = """
    INSERT INTO perdure_gates (organization, sort, name, key, slots, when_full, said_us, used_us)
    SELECT 'default', 'concurrency', 'gate-' || n, '', 5, 'queue', 0, n FROM generate_series(%s, %s) AS n
"""
TAKEN = "INSERT INTO perdure_slots (gate, n, taken_us) SELECT gate, -gate, 0 FROM perdure_gates"


KNOWN = ["without statistics", "statistics of empty tables", "statistics of few", "with statistics"]
"""What the server knows of the tables."""


@pytest.fixture(scope="module", params=KNOWN)
def session(request: pytest.FixtureRequest, postgres_databases: Any) -> Iterator[psycopg.Connection[Any]]:
    """A connection that plans as writing transactions do, to a database of many gates with a slot taken at each."""
    writer = Writer(postgres_databases.server.url(postgres_databases.make()))
    connection = writer.session.connection
    try:
        if request.param == "statistics of empty tables":
            connection.execute("VACUUM ANALYZE")
        connection.execute(MANY, [1, 10])
        connection.execute(TAKEN)
        if request.param == "statistics of few":
            connection.execute("ANALYZE")
        connection.execute(MANY, [11, 20_000])
        connection.execute(f"{TAKEN} WHERE used_us > 10")
        if request.param == "with statistics":
            connection.execute("ANALYZE")
        writer.session.begin(durable=False)
        yield connection
        writer.session.roll_back()
    finally:
        writer.close()


@pytest.mark.parametrize("name", NAMES)
def test_no_statement_about_gates_reads_a_table_in_full(session: psycopg.Connection[Any], name: str) -> None:
    for node in nodes(plan(session, name)):
        relation = node.get("Relation Name", "")
        if not relation or node["Node Type"] == "ModifyTable" or relation in SMALL:
            continue
        assert node["Node Type"] in ("Index Scan", "Index Only Scan"), node
        assert "Index Cond" in node or node["Index Name"] == BY_PLACE.get(name), node


def plan(connection: psycopg.Connection[Any], name: str) -> dict[str, Any]:
    """The plan of a statement that was made for any values."""
    statement = STATEMENTS[name]
    given = f"({', '.join(['NULL'] * len(statement.names))})" if statement.names else ""
    connection.execute(b"PREPARE asked AS " + statement.numbered)
    try:
        row = connection.execute(f"EXPLAIN (FORMAT JSON) EXECUTE asked {given}").fetchone()
    finally:
        connection.execute("DEALLOCATE asked")
    assert row is not None
    found: dict[str, Any] = (json.loads(row[0]) if isinstance(row[0], str) else row[0])[0]["Plan"]
    return found
