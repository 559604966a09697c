-- Count the parents of tasks anew. A parent in the frontier counts as open: its end has not reached its children yet.
UPDATE perdure_live AS live
SET waits = recount.waits, good = recount.good, bad = recount.bad, excused = recount.excused
FROM (
    SELECT
        asked.value AS n,
        count(*) FILTER (WHERE ends.n IS NULL OR frontier.n IS NOT NULL) AS waits,
        count(*) FILTER (WHERE frontier.n IS NULL AND ends.state IN ('succeeded', 'partially_succeeded')) AS good,
        count(*) FILTER (WHERE frontier.n IS NULL AND ends.state NOT IN ('succeeded', 'partially_succeeded')) AS bad,
        count(*) FILTER (
            WHERE frontier.n IS NULL AND ends.state NOT IN ('succeeded', 'partially_succeeded')
            AND edges.policy = 'continue'
        ) AS excused
    FROM json_each(:batch) AS asked
    CROSS JOIN perdure_edges AS edges INDEXED BY perdure_edges_by_child ON edges.child = asked.value
    LEFT JOIN perdure_ends AS ends ON ends.n = edges.parent
    LEFT JOIN perdure_frontier AS frontier ON frontier.n = edges.parent
    GROUP BY asked.value
) AS recount
WHERE live.n = recount.n AND live.state = 'pending'
