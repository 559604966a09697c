"""The step that brings schedules: documents that were there stay, and what is due is found along an index."""

from importlib.resources import files

import apsw

from perdure.store.sqlite.schema import known_steps, take_steps
from perdure.store.sqlite.statements import STATEMENTS

BEFORE = 3
"""The last step before the one of schedules."""


def test_documents_of_before_are_there_afterwards() -> None:
    connection = apsw.Connection(":memory:")
    steps = known_steps()
    take_steps(connection, [step for step in steps if step.number <= BEFORE], 1)
    row = ("default", "queue", "q", 3, '{"depth": 7, "paused": true}', "bob", 5)
    connection.execute("INSERT INTO perdure_definitions VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    take_steps(connection, [step for step in steps if step.number <= BEFORE + 1], 2)
    assert list(connection.execute("SELECT * FROM perdure_definitions")) == [row]
    indexes = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'index'")}
    assert {"perdure_definitions_with_depth", "perdure_definitions_paused"} <= indexes


def test_what_is_due_is_found_along_an_index_however_many_schedules_there_are() -> None:
    connection = apsw.Connection(":memory:")
    for step in sorted((files("perdure.store.sqlite") / "migrations").iterdir(), key=lambda each: each.name):
        if step.name.endswith(".sql"):
            connection.execute(step.read_text(encoding="utf-8"))
    for name, bindings in (("schedule_due", {"now": 1, "count": 1}), ("schedule_next", {"now": 1})):
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {STATEMENTS[name]}", bindings)]
        assert any("perdure_schedules_due (look_us" in line for line in plan), plan
        assert not any(line.startswith("SCAN") for line in plan), plan
