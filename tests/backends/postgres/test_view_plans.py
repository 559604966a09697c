"""How the statements behind the views find their rows: along an index, however much has ended.

Each plan is looked at as it was executed: with and without statistics, and made for these values as well as for any.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import psycopg
import pytest
from psycopg.sql import SQL, Literal

from perdure.store.postgres.statements import STATEMENTS

if TYPE_CHECKING:
    from servers.databases import Databases

TASKS = 200_000
GROWING = frozenset(
    {"tasks", "live", "ends", "attempts", "events", "jobs", "parts", "edges", "progress", "logs", "gates", "slots"}
)
"""Tables that grow with what is there or has ended."""
VIEWS = sorted(name for name in STATEMENTS if name.startswith("view_"))
PLACEHOLDER = re.compile(r"%\((\w+)\)s(::\w+)")

STRETCH = 100
HELD = 200
"""Tasks of the crowd that workers hold."""
LANES = 20
LAST = 2**63 - 1
NUMBERS = json.dumps(list(range(TASKS // 2, TASKS // 2 + 2 * STRETCH, 2)))

ORGANIZATION = {"organization": "default", "now": 10**15, "active": 10**15, "since": 0}
WALK = {**ORGANIZATION, "before": LAST, "stretch": STRETCH}
FROM_THE_FIRST = {**WALK, "before": -LAST}
ENDED = {**ORGANIZATION, "task": f"task-{TASKS // 2:09d}", "n": TASKS // 2}
SMALL_JOB = {**ORGANIZATION, "job": "job-000500", "j": 500}
LARGE_JOB = {**ORGANIZATION, "job": "job-001001", "j": 1001}
FILTER = {
    **ORGANIZATION,
    "ns": NUMBERS,
    "states": "[]",
    "lanes": None,
    "reasons": "[]",
    "discarded": None,
    "submitters": "[]",
    "ended_from": None,
    "ended_before": None,
}
EVERY_FILTER = {
    **FILTER,
    "states": '["succeeded"]',
    "lanes": "[1,2]",
    "reasons": '["ok"]',
    "discarded": False,
    "submitters": '["p"]',
    "ended_from": 1_000_000,
    "ended_before": LAST,
    "labels": '[["team","blue"]]',
}

GATES = {**WALK, "sort": "order", "beyond": "kind-1!"}
AT_GATES = {**ORGANIZATION, "shown": 10, "most": 1_000}


class Asked(NamedTuple):
    """A statement, what it is asked, and how many rows of growing tables it may read for that."""

    name: str
    bindings: dict[str, Any]
    at_most: int


def ends(*states: str) -> dict[str, Any]:
    return {**WALK, "before_us": LAST, "states": json.dumps(states)}


QUESTIONS = [
    Asked("view_attempts", ENDED, 4),
    Asked("view_breakers", ORGANIZATION, 0),
    Asked("view_ended", {**ORGANIZATION, "batch": json.dumps([f"task-{n:09d}" for n in range(STRETCH)])}, 2 * STRETCH),
    Asked("view_gates", {**AT_GATES, "gates": "[1]"}, 1 + 2 * 1_000 + 6 * 10),
    Asked("view_gates", {**AT_GATES, "gates": json.dumps(list(range(2, 2 + STRETCH)))}, STRETCH * (1 + 2 + 3)),
    Asked("view_history", ENDED, 6),
    Asked("view_job_history", SMALL_JOB, 4),
    Asked("view_job_number", SMALL_JOB, 1),
    Asked("view_job_open", LARGE_JOB, 5_001),
    Asked("view_job_open", SMALL_JOB, 1),
    Asked("view_job_progress", LARGE_JOB, 1 + 2 * 5_000),
    Asked("view_job_progress", SMALL_JOB, 1 + 2 * 10),
    Asked("view_job_tasks", SMALL_JOB, 1 + 10 * 5),
    Asked("view_job_tasks", LARGE_JOB, 1 + 5_000 * 5),
    Asked("view_jobs", {**ORGANIZATION, "js": "[1,500,1001]"}, 3),
    Asked("view_lanes_of", {**ORGANIZATION, "kinds": '["kind-1"]', "queues": '["queue-1"]'}, 0),
    Asked("view_logs", {**ENDED, "fence": 0, "sequence": 0, "count": STRETCH}, 1 + STRETCH),
    Asked("view_overview", {**ORGANIZATION, "marks": "{}"}, HELD + 2 * LANES),
    Asked("view_parts", ENDED, 4),
    Asked("view_pauses", {**ORGANIZATION, "count": 1_000}, 0),
    Asked("view_queues", {**ORGANIZATION, "marks": "{}"}, 2 * LANES),
    Asked("view_sift", {**FILTER, "labels": "[]"}, 2 * STRETCH),
    Asked("view_sift", EVERY_FILTER, 2 * STRETCH),
    Asked("view_standing", {**ENDED, "shown": 10, "most": 1_000}, 2 * LANES + 8),
    Asked("view_task_bodies", ENDED, 2),
    Asked("view_task_cards", {**ORGANIZATION, "ns": NUMBERS}, 6 * STRETCH),
    Asked("view_task_number", ENDED, 1),
    Asked("view_walk_any", {**WALK, "before": "~"}, STRETCH),
    Asked("view_walk_any", {**WALK, "before": f"task-{TASKS // 2:09d}"}, STRETCH),
    Asked("view_walk_ended", ends("succeeded"), STRETCH),
    Asked("view_walk_ended", ends("cancelled", "failed"), 2 * STRETCH),
    Asked("view_walk_ended", ends("succeeded", "cancelled", "failed", "expired"), 4 * STRETCH),
    Asked("view_walk_gates", {**GATES, "name": "kind-1", "key": ""}, 2 * STRETCH),
    Asked("view_walk_gates", {**GATES, "name": "kind-1 by customer", "key": '"05000"'}, 2 * STRETCH),
    Asked("view_walk_gates", {**GATES, "name": "kind-1 by customer", "key": '"05000"', "stretch": 1}, 2),
    Asked("view_walk_any_oldest", {**WALK, "before": ""}, STRETCH),
    Asked("view_walk_ended_oldest", {**ends("succeeded"), "before_us": 0, "before": -LAST}, STRETCH),
    Asked("view_walk_ended_oldest", {**ends("cancelled", "failed"), "before_us": 0, "before": -LAST}, 2 * STRETCH),
    Asked("view_walk_held_oldest", FROM_THE_FIRST, HELD),
    Asked("view_walk_job_oldest", {**FROM_THE_FIRST, **LARGE_JOB}, STRETCH + 1),
    Asked("view_walk_jobs_oldest", {**FROM_THE_FIRST, "states": '["pending","running","succeeded"]'}, 3 * STRETCH),
    Asked("view_walk_live_oldest", FROM_THE_FIRST, STRETCH),
    Asked("view_walk_waiting_oldest", {**FROM_THE_FIRST, "states": '["pending","retrying"]'}, 2 * STRETCH),
    Asked("view_walk_held", WALK, HELD),
    Asked("view_walk_job", {**WALK, **SMALL_JOB}, 11),
    Asked("view_walk_job", {**WALK, **LARGE_JOB}, STRETCH + 1),
    Asked("view_walk_jobs", {**WALK, "states": '["pending","running","succeeded"]'}, 3 * STRETCH),
    Asked("view_walk_live", WALK, STRETCH),
    Asked("view_walk_waiting", {**WALK, "states": '["pending"]'}, STRETCH),
    Asked("view_walk_waiting", {**WALK, "states": '["pending","retrying"]'}, 2 * STRETCH),
    Asked("view_workers", ORGANIZATION, HELD),
]


@pytest.fixture(scope="module")
def crowded(postgres_databases: "Databases") -> str:
    """The address of a database in which many tasks have ended."""
    url = postgres_databases.server.url(postgres_databases.make())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(Path(__file__).with_name("crowd.sql").read_text().replace(":tasks", str(TASKS)))
    return url


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def crowd(request: pytest.FixtureRequest, crowded: str) -> Iterator[psycopg.Connection[Any]]:
    """The same, connected to."""
    with psycopg.connect(crowded, autocommit=True) as connection:
        if request.param == "with statistics":
            connection.execute("ANALYZE")
        yield connection


@pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
@pytest.mark.parametrize("asked", QUESTIONS, ids=lambda asked: asked.name)
def test_a_view_reads_what_it_shows_and_by_an_index(crowd: psycopg.Connection[Any], asked: Asked, mode: str) -> None:
    plan = executed(crowd, asked, mode)
    scans = [node for node in nodes(plan) if table(node) in GROWING]
    assert [node["Relation Name"] for node in scans if node["Node Type"] == "Seq Scan"] == []
    assert sum(read(node) for node in scans) <= asked.at_most, drawn(plan)


def test_every_view_is_asked() -> None:
    assert sorted({asked.name for asked in QUESTIONS}) == VIEWS


@pytest.mark.parametrize("name", VIEWS)
def test_every_view_is_bound_to_an_organization(name: str) -> None:
    assert b"%(organization)s" in STATEMENTS[name].text


def executed(connection: psycopg.Connection[Any], asked: Asked, mode: str) -> dict[str, Any]:
    """The plan of a statement, with what it really read."""
    names: list[str] = []

    def numbered(found: re.Match[str]) -> str:
        if found[1] not in names:
            names.append(found[1])
        return f"${names.index(found[1]) + 1}{found[2]}"

    text = PLACEHOLDER.sub(numbered, STATEMENTS[asked.name].text.decode())
    connection.execute(f"SET plan_cache_mode = {mode}")
    connection.execute(f"PREPARE asked AS {text}")
    connection.execute("BEGIN READ ONLY")
    connection.execute(STATEMENTS["reading_by_index"].text)
    try:
        values = SQL(", ").join(Literal(asked.bindings[name]) for name in names)
        query = SQL("EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) EXECUTE asked ({})").format(values)
        row = connection.execute(query).fetchone()
    finally:
        connection.execute("ROLLBACK")
        connection.execute("DEALLOCATE asked")
    assert row is not None
    plan: dict[str, Any] = row[0][0]["Plan"]
    return plan


def nodes(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A node of a plan and all below it."""
    yield node
    for below in node.get("Plans", ()):
        yield from nodes(below)


def table(node: dict[str, Any]) -> str:
    """The table that a node reads, without the project's name before it; empty if it reads none."""
    return str(node.get("Relation Name", "")).removeprefix("perdure_")


def read(node: dict[str, Any]) -> int:
    """How many rows a node fetched, those included that it then left out."""
    removed = node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return round((node["Actual Rows"] + removed) * node["Actual Loops"])


def drawn(node: dict[str, Any], depth: int = 0) -> str:
    """A plan as an indented text."""
    about = [node["Node Type"], table(node), node.get("Index Name", ""), f"{read(node)} rows"]
    lines = ["\n" + "  " * depth + " ".join(each for each in about if each)]
    return "".join([*lines, *(drawn(below, depth + 1) for below in node.get("Plans", ()))])
