"""Reads the rows of a SQLite store: all of them for comparing, and those that contradict each other."""

from pathlib import Path
from typing import Any

import apsw

TIME_KEYS = ("last_us", "offset", "boot")
"""Rows of `meta` that begin so tell the store its time; they may move by themselves."""


def connect(path: Path) -> apsw.Connection:
    """A connection of one's own to the file."""
    connection = apsw.Connection(str(path))
    connection.set_busy_timeout(5_000)
    return connection


PREFIX = "perdure_"
"""Before the name of every table of the store; what is without it is a user's own."""


def tables(connection: apsw.Connection) -> list[str]:
    """The names of all tables."""
    query = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"
    return [name for (name,) in connection.execute(query)]


def snapshot(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Every table with all of its rows, sorted."""
    connection = connect(path)
    try:
        connection.execute("BEGIN")
        return {table.removeprefix(PREFIX): _rows(connection, table) for table in tables(connection)}
    finally:
        connection.close()


def _rows(connection: apsw.Connection, table: str) -> list[dict[str, Any]]:
    columns = [row[1] for row in connection.execute(f"PRAGMA table_xinfo({table})")]
    rows = [
        dict(zip(columns, row, strict=True))
        for row in connection.execute(f"SELECT {', '.join(columns)} FROM {table}")
        if not _moves_by_itself(table, row)
    ]
    return sorted(rows, key=repr)


def _moves_by_itself(table: str, row: tuple[Any, ...]) -> bool:
    """The store's notes of its time, and the number of the last place taken in line: a place may be left empty."""
    name = table.removeprefix(PREFIX)
    return (name == "meta" and str(row[0]).startswith(TIME_KEYS)) or (name == "counts" and row[0] == 0)


def without_late_results(tables: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The snapshot without the notes of results that came too late."""
    kept = [row for row in tables["events"] if row["type"] != "late_result"]
    return {**tables, "events": kept}


def contradictions(path: Path) -> list[str]:
    """One line for each fact that the rows do not agree on."""
    connection = connect(path)
    try:
        for table in tables(connection):
            if table.startswith(PREFIX):
                connection.execute(f"CREATE TEMP VIEW {table.removeprefix(PREFIX)} AS SELECT * FROM {table}")
        connection.execute("BEGIN")
        found = [f"{fact}: {row}" for fact, query in CHECKS.items() for row in connection.execute(query)]
        return found + _orphans(connection)
    finally:
        connection.close()


def _orphans(connection: apsw.Connection) -> list[str]:
    found: list[str] = []
    for table in (name for name in tables(connection) if name.startswith(PREFIX)):
        columns = {row[1] for row in connection.execute(f"PRAGMA table_xinfo({table})")}
        for column, owners in (("n", "tasks"), ("parent", "tasks"), ("child", "tasks"), ("job", "jobs")):
            if column not in columns or (table, column) == (f"{PREFIX}tasks", "n"):
                continue
            key = "j" if owners == "jobs" else "n"
            query = (
                f"SELECT {column} FROM {table} WHERE {column} IS NOT NULL "
                f"AND {column} NOT IN (SELECT {key} FROM {PREFIX}{owners})"
            )
            found += [
                f"a row of {table} belongs to a {owners[:-1]} that is gone: {row}" for row in connection.execute(query)
            ]
    return found


OPEN_PARENT = """
    (SELECT count(*) FROM edges JOIN live AS above ON above.n = edges.parent WHERE edges.child = live.n)
    + (SELECT count(*) FROM edges JOIN frontier ON frontier.n = edges.parent WHERE edges.child = live.n)
"""
"""Parents that have not ended, or whose end has not reached their children yet."""

PARENT_AGAIN = """
    EXISTS (
        SELECT 1 FROM edges
        JOIN (SELECT n, generation FROM live UNION ALL SELECT n, generation FROM ends) AS above
            ON above.n = edges.parent
        WHERE edges.child = live.n AND above.generation > 1
    )
"""
"""A parent was redriven: what it had let go before is not called back."""

MET_EARLY = "(waits = 0 AND (rule = 'any_succeeded' AND good > 0 OR rule = 'any_failed' AND bad > 0))"
"""The trigger asks for one parent only, and that one has ended so."""

CHECKS = {
    "a task is neither unfinished nor ended": """
        SELECT n FROM tasks WHERE n NOT IN (SELECT n FROM live) AND n NOT IN (SELECT n FROM ends)
    """,
    "a task is unfinished and ended": "SELECT n FROM live JOIN ends USING (n)",
    "a row stands in another lane, job or organization than its task": """
        SELECT tasks.n FROM tasks JOIN live USING (n)
        WHERE live.lane <> tasks.lane OR live.job IS NOT tasks.job OR live.organization <> tasks.organization
        UNION ALL SELECT tasks.n FROM tasks JOIN ends USING (n)
        WHERE ends.lane <> tasks.lane OR ends.job IS NOT tasks.job OR ends.organization <> tasks.organization
    """,
    "a lane is of another organization than its task": """
        SELECT tasks.n FROM tasks JOIN lanes USING (lane) WHERE lanes.organization <> tasks.organization
    """,
    "the counts are not what a recount gives (lane, state, counted, recounted)": """
        SELECT lane, state, sum(counted), sum(recounted) FROM (
            SELECT lane, state, count AS counted, 0 AS recounted FROM counts WHERE lane > 0
            UNION ALL SELECT lane, state, 0, 1 FROM live
            UNION ALL SELECT lane, state, 0, 1 FROM ends
            UNION ALL SELECT tasks.lane, 'attempts', 0, 1 FROM attempts JOIN tasks USING (n)
        ) GROUP BY lane, state HAVING sum(counted) <> sum(recounted)
    """,
    "the counters of a job from which nothing was purged are not what a recount gives (job, counters, recounted)": """
        SELECT jobs.id, json_array(total, open, succeeded, partial, failed, excused, cancelled) AS counters,
            json_array(
                (SELECT count(*) FROM tasks WHERE job = j),
                (SELECT count(*) FROM live WHERE job = j),
                (SELECT count(*) FROM ends WHERE job = j AND state = 'succeeded'),
                (SELECT count(*) FROM ends WHERE job = j AND state = 'partially_succeeded'),
                (SELECT count(*) FROM ends JOIN tasks USING (n) WHERE ends.job = j AND if_failed <> 'continue'
                    AND state IN ('failed', 'dead_lettered', 'expired')),
                (SELECT count(*) FROM ends JOIN tasks USING (n) WHERE ends.job = j AND if_failed = 'continue'
                    AND state IN ('failed', 'dead_lettered', 'expired')),
                (SELECT count(*) FROM ends WHERE job = j AND state = 'cancelled')
            ) AS recounted
        FROM jobs WHERE counters <> recounted
        AND total = (SELECT count(*) FROM tasks WHERE job = j)
    """,
    "a task that never ran does not wait for the parents that are open (task, waits, open)": f"""
        SELECT n, waits, {OPEN_PARENT} AS open FROM live JOIN tasks USING (n)
        WHERE state = 'pending' AND fence = 0 AND live.job IS NOT NULL AND waits <> open AND NOT {MET_EARLY}
        AND NOT (waits = 0 AND {PARENT_AGAIN})
    """,
    "a task runs or is about to before its parents ended": f"""
        SELECT n, state FROM live JOIN tasks USING (n)
        WHERE state IN ('queued', 'leased', 'running') AND generation = 1 AND {OPEN_PARENT} > 0 AND NOT {MET_EARLY}
        AND NOT {PARENT_AGAIN}
    """,
    "a task that waits for nothing cannot start by its trigger and has not ended": """
        SELECT live.n, rule, good, bad, live.excused, parents FROM live JOIN tasks USING (n)
        WHERE state = 'pending' AND waits = 0 AND parents > 0 AND fence = 0 AND NOT CASE rule
            WHEN 'all_succeeded' THEN bad = live.excused
            WHEN 'all_done' THEN 1
            WHEN 'any_succeeded' THEN good > 0
            ELSE bad > 0
        END
    """,
    "a queued task has no place in its line, or another task has it": """
        SELECT lane, seq FROM live WHERE state = 'queued' GROUP BY lane, seq HAVING count(*) > 1 OR seq IS NULL
    """,
    "a live attempt's fence is not above those of the attempts before": """
        SELECT n, fence FROM live
        WHERE fence < (SELECT max(fence) FROM attempts WHERE attempts.n = live.n)
        OR (attempt_id IS NOT NULL AND fence = (SELECT max(fence) FROM attempts WHERE attempts.n = live.n))
    """,
    "an attempt's id is that of another attempt of its task": """
        SELECT n, id FROM (
            SELECT n, id FROM attempts UNION ALL SELECT n, attempt_id FROM live WHERE attempt_id IS NOT NULL
        )
        GROUP BY n, id HAVING count(*) > 1
    """,
    "an ended task's fence is not its last attempt's": """
        SELECT n, fence FROM ends WHERE fence < (SELECT max(fence) FROM attempts WHERE attempts.n = ends.n)
    """,
    "a spent budget was overspent": """
        SELECT n, failures, losses FROM live JOIN tasks USING (n) WHERE failures >= max_attempts OR losses >= max_losses
        UNION ALL
        SELECT n, failures, losses FROM ends JOIN tasks USING (n) WHERE failures > max_attempts OR losses > max_losses
    """,
    "a result was kept for what did not succeed, or a success has none": """
        SELECT n, state FROM ends WHERE (state IN ('succeeded', 'partially_succeeded')) <> (result IS NOT NULL)
        AND NOT EXISTS (
            SELECT 1 FROM results_removed AS removed WHERE removed.lane = ends.lane AND removed.state = ends.state
            AND (ends.finished_us, ends.n) <= (removed.finished_us, removed.task)
        )
        AND NOT EXISTS (
            SELECT 1 FROM results_removed AS mark WHERE ends.job IS NULL AND ends.result IS NULL
            AND mark.lane = ends.lane AND mark.state = ends.state AND (mark.finished_us, mark.task) >= (finished_us, n)
        )
    """,
    "a receipt is of an attempt that neither lives nor succeeded": """
        SELECT n, attempt_id FROM receipts AS r
        WHERE NOT EXISTS (SELECT 1 FROM live WHERE live.n = r.n AND live.attempt_id = r.attempt_id)
        AND NOT EXISTS (SELECT 1 FROM attempts AS a WHERE a.n = r.n AND a.id = r.attempt_id AND a.state = 'succeeded')
    """,
    "the frontier holds a task that has not ended": "SELECT n FROM frontier WHERE n NOT IN (SELECT n FROM ends)",
    "an attempt belongs to a generation that its task has not reached": """
        SELECT a.n, a.generation FROM attempts AS a
        LEFT JOIN live USING (n) LEFT JOIN ends USING (n)
        WHERE a.generation > coalesce(live.generation, ends.generation)
    """,
    "two attempts ended their task in one generation": """
        SELECT n, generation FROM attempts
        WHERE task_state IN ('succeeded', 'partially_succeeded', 'failed', 'dead_lettered', 'cancelled', 'expired')
        GROUP BY n, generation HAVING count(*) > 1
    """,
    "a lease reaches past its deadline": "SELECT n FROM live WHERE lease_ends_us > deadline_us",
    "a worker holds more than its capacity": """
        SELECT worker FROM live JOIN workers ON workers.id = live.worker
        WHERE attempt_id IS NOT NULL GROUP BY worker HAVING count(*) > max(capacity)
    """,
    "an idempotency key points to nothing": """
        SELECT key FROM idempotency AS i WHERE what = 'task'
        AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.organization = i.organization AND tasks.id = i.id)
        UNION ALL SELECT key FROM idempotency AS i WHERE what = 'job'
        AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.organization = i.organization AND jobs.id = i.id)
    """,
}
