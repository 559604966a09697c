-- Stage ended tasks whose children have not been looked at. What another run has is left to it.
-- stages: ended
WITH taken AS (
    SELECT frontier.n, NULL::bigint AS job, frontier.good
    FROM perdure_frontier AS frontier
    ORDER BY frontier.n
    LIMIT %(count)s::bigint
    FOR UPDATE SKIP LOCKED
)
SELECT coalesce(jsonb_agg(to_jsonb(taken) ORDER BY taken.n), '[]')::text
FROM taken
