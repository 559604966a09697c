"""What must never be found in the rows of a store, as queries that every SQL store understands.

Tables are called by their names without the project's prefix, and `counts` tells the truth about every lane and state.
"""

OWNERS = (("n", "tasks"), ("parent", "tasks"), ("child", "tasks"), ("job", "jobs"))
"""Columns that say whose a row is, and where that is found."""

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
        WHERE live.lane <> tasks.lane OR live.job IS DISTINCT FROM tasks.job OR live.organization <> tasks.organization
        UNION ALL SELECT tasks.n FROM tasks JOIN ends USING (n)
        WHERE ends.lane <> tasks.lane OR ends.job IS DISTINCT FROM tasks.job OR ends.organization <> tasks.organization
    """,
    "a schedule stands without its document, or the other way round": """
        SELECT organization, name FROM schedules WHERE NOT EXISTS (
            SELECT 1 FROM definitions WHERE definitions.organization = schedules.organization
            AND definitions.name = schedules.name AND definitions.version = schedules.version AND type = 'schedule'
        )
        UNION ALL SELECT organization, name FROM definitions WHERE type = 'schedule' AND NOT EXISTS (
            SELECT 1 FROM schedules WHERE definitions.organization = schedules.organization
            AND definitions.name = schedules.name
        )
    """,
    "a schedule waits for no instant that is kept as waiting, or the other way round": """
        SELECT organization, name, waiting_us FROM schedules WHERE waiting_us IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM fires WHERE fires.organization = schedules.organization AND fires.schedule = schedules.name
            AND fires.instant_us = schedules.waiting_us AND fires.outcome = 'waiting'
        )
        UNION ALL SELECT organization, schedule, instant_us FROM fires WHERE outcome = 'waiting' AND NOT EXISTS (
            SELECT 1 FROM schedules WHERE fires.organization = schedules.organization
            AND fires.schedule = schedules.name AND fires.instant_us = schedules.waiting_us
        )
    """,
    "a task's lane is not there": "SELECT n, lane FROM tasks WHERE lane NOT IN (SELECT lane FROM lanes)",
    "a lane is of another organization than its task": """
        SELECT tasks.n FROM tasks JOIN lanes USING (lane) WHERE lanes.organization <> tasks.organization
    """,
    "the counts are not what a recount gives (lane, state, counted, recounted)": """
        SELECT lane, state, sum(counted), sum(recounted) FROM (
            SELECT lane, state, count AS counted, 0 AS recounted FROM counts WHERE lane > 0
            UNION ALL SELECT lane, state, 0, 1 FROM live
            UNION ALL SELECT lane, state, 0, 1 FROM ends
            UNION ALL SELECT tasks.lane, 'attempts', 0, 1 FROM attempts JOIN tasks USING (n)
        ) AS both_counts GROUP BY lane, state HAVING sum(counted) <> sum(recounted)
    """,
    "the counters of a job from which nothing was purged are not what a recount gives (job, counters, recounted)": """
        SELECT * FROM (
            SELECT jobs.id, total, open, succeeded, partial, failed, excused, cancelled,
                (SELECT count(*) FROM tasks WHERE job = j) AS r_total,
                (SELECT count(*) FROM live WHERE job = j) AS r_open,
                (SELECT count(*) FROM ends WHERE job = j AND state = 'succeeded') AS r_succeeded,
                (SELECT count(*) FROM ends WHERE job = j AND state = 'partially_succeeded') AS r_partial,
                (SELECT count(*) FROM ends JOIN tasks USING (n) WHERE ends.job = j AND if_failed <> 'continue'
                    AND state IN ('failed', 'dead_lettered', 'expired')) AS r_failed,
                (SELECT count(*) FROM ends JOIN tasks USING (n) WHERE ends.job = j AND if_failed = 'continue'
                    AND state IN ('failed', 'dead_lettered', 'expired')) AS r_excused,
                (SELECT count(*) FROM ends WHERE job = j AND state = 'cancelled') AS r_cancelled
            FROM jobs
        ) AS job
        WHERE total = r_total AND (open, succeeded, partial, failed, excused, cancelled)
            <> (r_open, r_succeeded, r_partial, r_failed, r_excused, r_cancelled)
    """,
    "a task that never ran does not wait for the parents that are open (task, waits, open)": f"""
        SELECT n, waits, {OPEN_PARENT} AS open FROM live JOIN tasks USING (n)
        WHERE state = 'pending' AND fence = 0 AND live.job IS NOT NULL AND waits <> {OPEN_PARENT} AND NOT {MET_EARLY}
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
            WHEN 'all_done' THEN TRUE
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
        ) AS every_attempt
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
            AND mark.lane = ends.lane AND mark.state = ends.state
            AND (mark.finished_us, mark.task) >= (ends.finished_us, ends.n)
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
    # One that drains tells a capacity of none, and keeps what it has to its end.
    "a worker that takes work holds more than its capacity": """
        SELECT worker FROM live JOIN workers ON workers.id = live.worker
        WHERE attempt_id IS NOT NULL AND capacity > 0 GROUP BY worker HAVING count(*) > max(capacity)
    """,
    "an idempotency key points to nothing, though no task was removed": """
        SELECT key FROM idempotency AS i WHERE what = 'task' AND (SELECT count(*) = max(n) FROM tasks)
        AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.organization = i.organization AND tasks.id = i.id)
        UNION ALL SELECT key FROM idempotency AS i WHERE what = 'job' AND (SELECT count(*) = max(j) FROM jobs)
        AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.organization = i.organization AND jobs.id = i.id)
    """,
    "more slots of a gate were taken than it has when one more was (gate, slots, task, taken)": """
        SELECT gates.gate, gates.slots, last.n, count(*) FROM gates JOIN slots AS last USING (gate)
        JOIN slots AS taken ON taken.gate = last.gate AND taken.taken_us >= gates.said_us
            AND taken.taken_us <= last.taken_us AND (taken.free_us IS NULL OR taken.free_us > last.taken_us)
        GROUP BY gates.gate, gates.slots, last.n, last.taken_us HAVING count(*) > gates.slots
    """,
    "a slot belongs to a task that is not at work (gate, task)": """
        SELECT slots.gate, slots.n FROM slots JOIN gates USING (gate) LEFT JOIN live USING (n)
        WHERE free_us IS NULL AND NOT CASE sort
            WHEN 'order' THEN live.n IS NOT NULL
            WHEN 'rate' THEN live.state IN ('pending', 'retrying', 'queued')
            ELSE live.gate IS NOT NULL OR coalesce(live.state, '') IN ('queued', 'leased', 'running', 'cancelling')
        END
    """,
    "a task with gates has joined its lane without a slot": """
        SELECT n FROM live JOIN tasks USING (n)
        WHERE gated = 1 AND state = 'queued' AND n NOT IN (SELECT n FROM slots WHERE free_us IS NULL)
        -- One that came back after its turn in the lane goes to the head of the line, without another turn.
        AND NOT (
            live.fence > 0 AND options ->> 'gates' LIKE '[["fair"%' AND options ->> 'gates' NOT LIKE '%"concurrency"%'
        )
    """,
    "two unfinished tasks have a key that each wants for itself until it has ended (key, tasks)": """
        SELECT live.organization, options -> 'unique' ->> 'key', count(*)
        FROM live JOIN tasks USING (n)
        WHERE options -> 'unique' ->> 'on_conflict' IN ('reject', 'return_existing', 'replace')
        AND options -> 'unique' ->> 'within_us' IS NULL
        AND options -> 'unique' ->> 'states' LIKE '%cancelling%leased%running%'
        GROUP BY live.organization, options -> 'unique' ->> 'key' HAVING count(*) > 1
    """,
    "the key of a task that waits and wants it for itself is another's, or nobody's": """
        SELECT live.n FROM live JOIN tasks USING (n)
        LEFT JOIN unique_keys AS held
            ON held.organization = live.organization AND held.task_id = tasks.id
            AND held.key = options -> 'unique' ->> 'key'
        WHERE live.state IN ('pending', 'queued') AND options -> 'unique' ->> 'within_us' IS NULL
        AND options -> 'unique' IS NOT NULL AND held.key IS NULL AND live.fence = 0
    """,
    "a key is held by a task that is gone and has left no state": """
        SELECT held.key, held.task_id FROM unique_keys AS held
        LEFT JOIN tasks ON tasks.organization = held.organization AND tasks.id = held.task_id
        WHERE (tasks.n IS NULL) <> (held.left_state IS NOT NULL)
    """,
    "a task waits at a gate that has room (task, gate)": """
        SELECT live.n, live.gate FROM live JOIN gates ON gates.gate = live.gate
        WHERE (SELECT count(*) FROM slots WHERE slots.gate = live.gate) < gates.slots
    """,
}
