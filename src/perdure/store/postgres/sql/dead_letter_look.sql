-- The dead letters of a batch, in the order of the batch: number, whether discarded, whether its job is open, generation,
-- initiator; null where there is none. Locks them in ascending order, then their jobs.
WITH asked AS MATERIALIZED (
    SELECT item.place, tasks.n, tasks.initiator
    FROM jsonb_array_elements_text(%(batch)s::jsonb) WITH ORDINALITY AS item (value, place)
    LEFT JOIN perdure_tasks AS tasks ON tasks.organization = %(organization)s::text AND tasks.id = ANY (ARRAY[item.value])
),
letters AS MATERIALIZED (
    SELECT ends.n, ends.job, ends.discarded_us, ends.generation
    FROM (SELECT DISTINCT asked.n FROM asked) AS each
    JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[each.n])
    WHERE ends.state = 'dead_lettered'
    ORDER BY ends.n
    FOR UPDATE OF ends
),
locked_jobs AS MATERIALIZED (
    SELECT jobs.j, jobs.open
    FROM (SELECT DISTINCT letters.job FROM letters) AS each
    JOIN perdure_jobs AS jobs ON jobs.j = ANY (ARRAY[each.job])
    ORDER BY jobs.j
    FOR UPDATE OF jobs
)
SELECT coalesce(jsonb_agg(jsonb_build_array(
    letters.n, letters.discarded_us IS NOT NULL, coalesce(locked_jobs.open > 0, false), letters.generation,
    asked.initiator
) ORDER BY asked.place), '[]')::text
FROM asked
LEFT JOIN letters ON letters.n = asked.n
LEFT JOIN locked_jobs ON locked_jobs.j = letters.job
