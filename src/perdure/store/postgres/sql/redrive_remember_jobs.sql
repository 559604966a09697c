-- What the rows of jobs that run again have told becomes lines of their history: since when they failed, and their ends.
-- Locks the jobs in ascending order.
WITH locked AS MATERIALIZED (
    SELECT jobs.j, jobs.organization, jobs.initiator, jobs.state, jobs.failing_since_us, jobs.finished_us
    FROM (
        SELECT DISTINCT ends.job
        FROM jsonb_array_elements_text(%(batch)s::jsonb) AS redriven (value)
        JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[redriven.value::bigint])
        WHERE ends.job IS NOT NULL
    ) AS each
    JOIN perdure_jobs AS jobs ON jobs.j = ANY (ARRAY[each.job])
    ORDER BY jobs.j
    FOR UPDATE OF jobs
)
INSERT INTO perdure_events (organization, job, at_us, type, actor, initiator, data)
SELECT locked.organization, locked.j, locked.failing_since_us, 'failing', 'system', locked.initiator, NULL
FROM locked
WHERE locked.failing_since_us IS NOT NULL
UNION ALL
SELECT
    locked.organization, locked.j, locked.finished_us, 'ended', 'system', locked.initiator,
    json_build_object('state', locked.state)::text
FROM locked
WHERE locked.finished_us IS NOT NULL
