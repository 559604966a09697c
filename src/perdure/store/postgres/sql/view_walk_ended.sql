-- The next stretch of ended tasks in some states, last ended first: number and position.
-- Whether a state is asked for is decided before any row is read: what is not asked for is not walked.
SELECT coalesce(json_agg(
    json_build_array(walked.n, walked.finished_us, walked.n) ORDER BY walked.finished_us DESC, walked.n DESC
), '[]')::text
FROM (
    SELECT ends.finished_us, ends.n
    FROM perdure_ends AS ends
    WHERE ends.organization = %(organization)s::text AND ends.state = 'succeeded'
    AND (ends.finished_us, ends.n) < (%(before_us)s::bigint, %(before)s::bigint)
    AND strpos(%(states)s::text, '"succeeded"') > 0
    UNION ALL
    SELECT ends.finished_us, ends.n
    FROM perdure_ends AS ends
    WHERE ends.organization = %(organization)s::text AND ends.state = 'partially_succeeded'
    AND (ends.finished_us, ends.n) < (%(before_us)s::bigint, %(before)s::bigint)
    AND strpos(%(states)s::text, '"partially_succeeded"') > 0
    UNION ALL
    SELECT ends.finished_us, ends.n
    FROM perdure_ends AS ends
    WHERE ends.organization = %(organization)s::text AND ends.state = 'failed'
    AND (ends.finished_us, ends.n) < (%(before_us)s::bigint, %(before)s::bigint)
    AND strpos(%(states)s::text, '"failed"') > 0
    UNION ALL
    SELECT ends.finished_us, ends.n
    FROM perdure_ends AS ends
    WHERE ends.organization = %(organization)s::text AND ends.state = 'dead_lettered'
    AND (ends.finished_us, ends.n) < (%(before_us)s::bigint, %(before)s::bigint)
    AND strpos(%(states)s::text, '"dead_lettered"') > 0
    UNION ALL
    SELECT ends.finished_us, ends.n
    FROM perdure_ends AS ends
    WHERE ends.organization = %(organization)s::text AND ends.state = 'cancelled'
    AND (ends.finished_us, ends.n) < (%(before_us)s::bigint, %(before)s::bigint)
    AND strpos(%(states)s::text, '"cancelled"') > 0
    UNION ALL
    SELECT ends.finished_us, ends.n
    FROM perdure_ends AS ends
    WHERE ends.organization = %(organization)s::text AND ends.state = 'expired'
    AND (ends.finished_us, ends.n) < (%(before_us)s::bigint, %(before)s::bigint)
    AND strpos(%(states)s::text, '"expired"') > 0
    ORDER BY finished_us DESC, n DESC
    LIMIT %(stretch)s::bigint
) AS walked
