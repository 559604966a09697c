-- What came of the instants of a schedule, the latest first, after a row by its instant and outcome.
SELECT first_us, last_us, instants, cause, outcome, reason, text, task_id, job_id, at_us
FROM (
    SELECT *
    FROM (
        SELECT
            instant_us AS first_us, instant_us AS last_us, 1 AS instants, cause, outcome, NULL::text AS reason,
            NULL::text AS text, task_id, job_id, at_us
        FROM perdure_fires AS fires
        WHERE organization = %(organization)s::text AND schedule = %(schedule)s::text
        AND instant_us <= %(before)s::bigint AND (instant_us < %(before)s::bigint OR outcome > %(named)s::text)
        ORDER BY instant_us DESC
        LIMIT %(count)s::bigint
    ) AS latest_fires
    UNION ALL
    SELECT *
    FROM (
        SELECT
            first_us, last_us, instants, 'time' AS cause, 'skipped' AS outcome, reason,
            text, NULL::text AS task_id, NULL::text AS job_id, at_us
        FROM perdure_skips AS skips
        WHERE organization = %(organization)s::text AND schedule = %(schedule)s::text
        AND first_us <= %(before)s::bigint AND (first_us < %(before)s::bigint OR 'skipped' > %(named)s::text)
        ORDER BY first_us DESC
        LIMIT %(count)s::bigint
    ) AS latest_skips
) AS both_sorts
ORDER BY first_us DESC, outcome
LIMIT %(count)s::bigint
