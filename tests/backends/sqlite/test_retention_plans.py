"""Retention looks at what is to go, however much is kept."""

from importlib.resources import files
from typing import Any

import apsw
import pytest

from perdure.store.sqlite.statements import STATEMENTS

BINDINGS: dict[str, Any] = {
    "batch": "[]",
    "count": 1,
    "now": 1,
    "before": 1,
    "lane": 1,
    "state": "",
    "done_us": 0,
    "done": 0,
}


@pytest.mark.parametrize(
    ("statement", "search"),
    [
        ("retain_alone", "ends USING INDEX perdure_ends_alone (lane=? AND state=? AND finished_us<?)"),
        (
            "retain_jobs",
            "jobs USING COVERING INDEX perdure_jobs_finished (state=? AND finished_us>? AND finished_us<?)",
        ),
        ("retain_job_tasks", "tasks USING COVERING INDEX perdure_tasks_by_job (job=?)"),
        (
            "retain_results",
            "ends USING INDEX perdure_ends_alone (lane=? AND state=? AND finished_us>? AND finished_us<?)",
        ),
    ],
)
def test_what_is_to_go_is_found_along_an_index(statement: str, search: str) -> None:
    connection = apsw.Connection(":memory:")
    for step in sorted((files("perdure.store.sqlite") / "migrations").iterdir(), key=lambda each: each.name):
        if step.name.endswith(".sql"):
            connection.execute(step.read_text(encoding="utf-8"))
    plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {STATEMENTS[statement]}", BINDINGS)]
    assert any(line.startswith(f"SEARCH {search}") for line in plan), plan
    assert not any("TEMP B-TREE" in line for line in plan), plan
