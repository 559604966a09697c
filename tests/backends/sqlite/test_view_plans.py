"""How the statements behind the views find their rows: along an index, whatever has ended."""

import re
from importlib.resources import files
from typing import Any

import apsw
import pytest

from perdure.store.relational.both_ways import OLDEST_FIRST
from perdure.store.sqlite.statements import STATEMENTS

GROWING = ("tasks", "ends", "attempts", "events", "jobs", "parts", "edges", "progress", "gates", "slots")
"""Tables that grow with what has ended."""
VIEWS = sorted(name for name in STATEMENTS if name.startswith("view_"))
ALIAS = re.compile(rf"\bperdure_({'|'.join(GROWING)})\s+AS\s+(\w+)")
BINDING = re.compile(r":(\w+)")


@pytest.fixture(scope="module")
def connection() -> apsw.Connection:
    """An empty database of the current schema, without statistics."""
    opened = apsw.Connection(":memory:")
    for step in sorted((files("perdure.store.sqlite") / "migrations").iterdir(), key=lambda each: each.name):
        if step.name.endswith(".sql"):
            opened.execute(step.read_text(encoding="utf-8"))
    return opened


def plan(connection: apsw.Connection, name: str) -> list[str]:
    """The lines of the plan of a statement."""
    statement = STATEMENTS[name]
    bindings: dict[str, Any] = dict.fromkeys(BINDING.findall(statement))
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}", bindings)]


@pytest.mark.parametrize("name", VIEWS)
def test_no_view_reads_a_growing_table_in_full(connection: apsw.Connection, name: str) -> None:
    names = {*GROWING, *(alias for _, alias in ALIAS.findall(STATEMENTS[name]))}
    scans = [line for line in plan(connection, name) if line.startswith("SCAN") and line.split()[1] in names]
    assert scans == []


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_bound_to_an_organization(name: str) -> None:
    assert ":organization" in STATEMENTS[name]


SORTED = ("view_walk_ended", "view_walk_any", "view_walk_job", "view_walk_jobs", "view_walk_live")
"""Those that walk both ways, but for the few where all is sorted."""


@pytest.mark.parametrize("name", [*SORTED, *(name + OLDEST_FIRST for name in SORTED), "view_walk_gates"])
def test_a_stretch_of_a_list_is_read_in_the_order_of_its_index(connection: apsw.Connection, name: str) -> None:
    lines = plan(connection, name)
    inner = [line for line in lines if "ORDER BY" in line and "group_array" not in line]
    assert inner == [], lines


def test_unfinished_tasks_are_never_read_in_full_but_for_one_page(connection: apsw.Connection) -> None:
    for name in VIEWS:
        scans = [line for line in plan(connection, name) if line.startswith("SCAN live")]
        assert all("live_held" in line for line in scans), (name, scans)
