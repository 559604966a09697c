-- The next ends of a lane whose results have had their time, oldest first: instant and task. Locks them.
WITH next AS MATERIALIZED (
    SELECT ends.finished_us, ends.n
    FROM perdure_ends AS ends
    WHERE ends.job IS NULL AND ends.lane = %(lane)s::bigint AND ends.state = %(state)s::text
    AND (ends.finished_us, ends.n) > (%(done_us)s::bigint, %(done)s::bigint)
    AND ends.finished_us < %(before)s::bigint
    ORDER BY ends.finished_us, ends.n
    LIMIT %(count)s::bigint
    FOR UPDATE
)
SELECT coalesce(jsonb_agg(jsonb_build_array(finished_us, n) ORDER BY finished_us, n), '[]')::text
FROM next
