-- Count the parents of tasks anew. A parent in the frontier counts as open: its end has not reached its children yet.
-- The rows of these tasks, and of what they wait for, are locked already.
UPDATE perdure_live AS live
SET waits = recount.waits, good = recount.good, bad = recount.bad, excused = recount.excused
FROM (
    SELECT
        edges.child AS n,
        count(*) FILTER (WHERE ends.n IS NULL OR frontier.n IS NOT NULL) AS waits,
        count(*) FILTER (WHERE frontier.n IS NULL AND ends.state IN ('succeeded', 'partially_succeeded')) AS good,
        count(*) FILTER (WHERE frontier.n IS NULL AND ends.state NOT IN ('succeeded', 'partially_succeeded')) AS bad,
        count(*) FILTER (
            WHERE frontier.n IS NULL AND ends.state NOT IN ('succeeded', 'partially_succeeded')
            AND edges.policy = 'continue'
        ) AS excused
    FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value)
    JOIN perdure_edges AS edges ON edges.child = ANY (ARRAY[asked.value::bigint])
    LEFT JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[edges.parent])
    LEFT JOIN perdure_frontier AS frontier ON frontier.n = ANY (ARRAY[edges.parent])
    GROUP BY edges.child
) AS recount
WHERE live.n = ANY (ARRAY[recount.n]) AND coalesce(live.state, '') = 'pending'
