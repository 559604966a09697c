"""How the statements behind the operations find their rows: by number or along an index, however many tasks wait."""

import re
from importlib.resources import files
from typing import Any

import apsw
import pytest

from perdure.store.sqlite.opening import WORKING_TABLES
from perdure.store.sqlite.statements import STATEMENTS

READ_IN_FULL = {
    "doubtful_find": "live: a duty looks at every held task, along the index that has no others",
    "purge_stage": "live: an operator empties a queue, oldest tasks first",
}
GROWING = (
    "live",
    "tasks",
    "ends",
    "attempts",
    "events",
    "edges",
    "parts",
    "receipts",
    "progress",
    "idempotency",
    "unique_keys",
)
ALIAS = re.compile(rf"\bperdure_({'|'.join(GROWING)})\s+AS\s+(\w+)")
BINDING = re.compile(r":(\w+)")
OPERATIONS = sorted(
    name for name in STATEMENTS if not name.startswith(("copy_", "schema_", "synchronous_", "transaction_", "view_"))
)


@pytest.fixture(scope="module")
def connection() -> apsw.Connection:
    """An empty database of the current schema, without statistics, as a connection that writes has it."""
    opened = apsw.Connection(":memory:")
    for step in sorted((files("perdure.store.sqlite") / "migrations").iterdir(), key=lambda each: each.name):
        if step.name.endswith(".sql"):
            opened.execute(step.read_text(encoding="utf-8"))
    opened.execute(WORKING_TABLES.read_text(encoding="utf-8"))
    return opened


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_operation_reads_a_growing_table_in_full(connection: apsw.Connection, name: str) -> None:
    statement = STATEMENTS[name]
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", _bindings(name))]
    tables = {*GROWING, *(alias for _, alias in ALIAS.findall(statement))}
    scans = [line for line in plan if line.startswith("SCAN") and line.split()[1] in tables]
    assert not scans or name in READ_IN_FULL, plan


def _bindings(name: str) -> Any:
    statement = STATEMENTS[name]
    named: dict[str, Any] = dict.fromkeys(BINDING.findall(statement))
    return named or (None,) * (len(re.findall(r"\?(?!\d)", statement)) + len(set(re.findall(r"\?\d+", statement))))


HOT = (
    "task_insert_alike",
    "task_insert_plain",
    "task_insert",
    "live_insert_plain",
    "live_insert",
    "lone_task",
    "lone_live",
    "claim_lease",
    "settle_end",
    "attempt_insert",
)


@pytest.mark.parametrize("name", HOT)
def test_no_check_and_no_index_makes_a_table_for_each_row(connection: apsw.Connection, name: str) -> None:
    steps = [row[1] for row in connection.execute(f"EXPLAIN {STATEMENTS[name]}", _bindings(name))]
    written = steps[steps.index("TypeCheck") :]
    made = [place for place, step in enumerate(written) if step == "OpenEphemeral"]
    assert [place for place in made if "Once" not in written[place - 3 : place]] == []
