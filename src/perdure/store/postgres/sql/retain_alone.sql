-- Tasks without a job that ended long enough ago: by lane and state, oldest first. Locks them; what is being run again
-- or removed beside is left.
SELECT coalesce(jsonb_agg(going.n), '[]')::text
FROM (
    SELECT oldest.n
    FROM jsonb_array_elements(%(batch)s::jsonb) AS asked (value)
    CROSS JOIN LATERAL (
        SELECT ends.n
        FROM perdure_ends AS ends
        WHERE ends.job IS NULL AND ends.lane = (asked.value ->> 0)::bigint AND ends.state = asked.value ->> 1
        AND ends.finished_us < (asked.value ->> 2)::bigint
        ORDER BY ends.finished_us, ends.n
        LIMIT %(count)s::bigint
        FOR UPDATE SKIP LOCKED
    ) AS oldest
    LIMIT %(count)s::bigint
) AS going
