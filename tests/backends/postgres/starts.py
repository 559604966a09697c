"""What the rows of a PostgreSQL store say of starts at a rate."""

from typing import Any

EXCEEDED = """
    WITH attempted AS (
        SELECT n, leased_us FROM perdure_attempts
        UNION ALL SELECT n, leased_us FROM perdure_live WHERE leased_us IS NOT NULL
    ),
    starts AS (
        SELECT gate.value ->> 1 AS name, gate.value ->> 2 AS key, attempted.leased_us
        FROM attempted
        JOIN perdure_tasks AS tasks USING (n)
        CROSS JOIN LATERAL json_array_elements(tasks.options -> 'gates') AS gate (value)
        WHERE gate.value ->> 0 = 'rate'
    ),
    later AS (
        SELECT name, key, leased_us, lead(leased_us, %s::integer) OVER at_rate AS after_us
        FROM starts
        WINDOW at_rate AS (PARTITION BY name, key ORDER BY leased_us)
    )
    SELECT name, key, after_us - leased_us FROM later WHERE after_us - leased_us < %s
"""
"""Where one start more than there may be came within the time."""


def exceeded(connection: Any, rate: int, period_us: int) -> list[tuple[str, str, int]]:
    """Each start that came too early at a gate of this rate: its name and key, and how long after the one before."""
    found: list[tuple[str, str, int]] = connection.execute(EXCEEDED, [rate, period_us]).fetchall()
    return found
