-- What came of the instants of a schedule, the latest first, after a row by its instant and outcome.
SELECT first_us, last_us, instants, cause, outcome, reason, text, task_id, job_id, at_us
FROM (
    SELECT *
    FROM (
        SELECT
            instant_us AS first_us, instant_us AS last_us, 1 AS instants, cause, outcome, NULL AS reason,
            NULL AS text, task_id, job_id, at_us
        FROM perdure_fires AS fires
        WHERE organization = :organization AND schedule = :schedule
        AND instant_us <= :before AND (instant_us < :before OR outcome > :named)
        ORDER BY instant_us DESC
        LIMIT :count
    )
    UNION ALL
    SELECT *
    FROM (
        SELECT
            first_us, last_us, instants, 'time' AS cause, 'skipped' AS outcome, reason,
            text, NULL AS task_id, NULL AS job_id, at_us
        FROM perdure_skips AS skips
        WHERE organization = :organization AND schedule = :schedule
        AND first_us <= :before AND (first_us < :before OR 'skipped' > :named)
        ORDER BY first_us DESC
        LIMIT :count
    )
)
ORDER BY first_us DESC, outcome
LIMIT :count
