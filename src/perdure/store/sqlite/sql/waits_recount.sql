-- Count the parents of tasks anew.
UPDATE live
SET waits = recount.waits, good = recount.good, bad = recount.bad, excused = recount.excused
FROM (
    SELECT
        asked.value AS n,
        count(parent.n) AS waits,
        count(*) FILTER (WHERE ends.state IN ('succeeded', 'partially_succeeded')) AS good,
        count(*) FILTER (WHERE ends.state NOT IN ('succeeded', 'partially_succeeded')) AS bad,
        count(*) FILTER (
            WHERE ends.state NOT IN ('succeeded', 'partially_succeeded') AND edges.policy = 'continue'
        ) AS excused
    FROM json_each(:batch) AS asked
    CROSS JOIN edges INDEXED BY edges_by_child ON edges.child = asked.value
    LEFT JOIN live AS parent ON parent.n = edges.parent
    LEFT JOIN ends ON ends.n = edges.parent
    GROUP BY asked.value
) AS recount
WHERE live.n = recount.n AND live.state = 'pending'
