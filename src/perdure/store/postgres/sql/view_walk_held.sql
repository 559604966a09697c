-- The next stretch of leased tasks, newest first: number and position. All are sorted: workers' capacity bounds them.
-- Each worker's part of the index is read from the first fence that it may hold: what it held before lies dead below.
-- walks: both ways
WITH held AS MATERIALIZED (
    SELECT own.n
    FROM perdure_workers AS workers
    CROSS JOIN LATERAL (
        SELECT live.n
        FROM perdure_live AS live
        WHERE live.worker = workers.id AND live.attempt_id IS NOT NULL AND live.fence >= workers.held_from
        AND live.organization = %(organization)s::text
        OFFSET 0
    ) AS own
)
SELECT coalesce(json_agg(json_build_array(walked.n, walked.n) ORDER BY walked.n DESC), '[]')::text
FROM (
    SELECT held.n
    FROM held
    WHERE held.n < %(before)s::bigint
    ORDER BY held.n DESC
    LIMIT %(stretch)s::bigint
) AS walked
