-- Those of a stretch of tasks that a filter lets through, by number, in the order given. An empty list filters nothing.
SELECT coalesce(json_agg(tasks.n ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements_text(%(ns)s::jsonb) WITH ORDINALITY AS asked (n, place)
CROSS JOIN LATERAL (
    SELECT * FROM perdure_tasks AS found
    WHERE found.n = asked.n::bigint AND found.organization = %(organization)s::text
    LIMIT 1
) AS tasks
LEFT JOIN perdure_live AS live ON live.n = tasks.n
LEFT JOIN perdure_ends AS ends ON ends.n = tasks.n
WHERE (%(states)s::jsonb = '[]' OR %(states)s::jsonb ? coalesce(live.state, ends.state))
AND (
    %(lanes)s::jsonb IS NULL
    OR tasks.lane IN (SELECT lane::bigint FROM jsonb_array_elements_text(%(lanes)s::jsonb) AS wanted (lane))
)
AND (%(reasons)s::jsonb = '[]' OR %(reasons)s::jsonb ? ends.reason)
AND (%(discarded)s::boolean IS NULL OR (ends.discarded_us IS NOT NULL) = %(discarded)s::boolean)
AND (%(submitters)s::jsonb = '[]' OR %(submitters)s::jsonb ? tasks.principal)
AND (%(ended_from)s::bigint IS NULL OR ends.finished_us >= %(ended_from)s::bigint)
AND (%(ended_before)s::bigint IS NULL OR ends.finished_us < %(ended_before)s::bigint)
AND NOT EXISTS (
    SELECT 1
    FROM jsonb_array_elements(%(labels)s::jsonb) AS wanted (label)
    WHERE (tasks.options -> 'labels' ->> (wanted.label ->> 0)) IS DISTINCT FROM wanted.label ->> 1
)
