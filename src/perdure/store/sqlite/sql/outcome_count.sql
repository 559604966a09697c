-- Count how attempts ended: a batch of [organization, kind, bucket, beginning of the window, when it was leased, whether it
-- failed]. Those that began before the breaker's last change, or while it was open, are not counted. Returns for each
-- kind since when is counted, until when its breaker is open, and the attempts and failures: of the window while it is closed.
INSERT INTO perdure_outcomes (organization, kind, since_us, bucket_us, writer, attempts, failures)
SELECT
    outcome.value ->> 0, outcome.value ->> 1, coalesce(breakers.since_us, 0), outcome.value ->> 2, 0,
    count(*), sum(outcome.value ->> 5)
FROM json_each(:batch) AS outcome
LEFT JOIN perdure_breakers AS breakers
    ON breakers.organization = outcome.value ->> 0 AND breakers.kind = outcome.value ->> 1
WHERE outcome.value ->> 4 >= coalesce(breakers.until_us, breakers.since_us, 0)
GROUP BY 1, 2
ON CONFLICT (organization, kind, since_us, bucket_us, writer) DO UPDATE
SET attempts = attempts + excluded.attempts, failures = failures + excluded.failures
RETURNING
    organization, kind, since_us,
    (
        SELECT breakers.until_us FROM perdure_breakers AS breakers
        WHERE breakers.organization = perdure_outcomes.organization AND breakers.kind = perdure_outcomes.kind
    ),
    (
        SELECT json_array(
            perdure_outcomes.attempts + coalesce(sum(earlier.attempts), 0),
            perdure_outcomes.failures + coalesce(sum(earlier.failures), 0)
        )
        FROM perdure_outcomes AS earlier
        WHERE earlier.organization = perdure_outcomes.organization AND earlier.kind = perdure_outcomes.kind
        AND earlier.since_us = perdure_outcomes.since_us AND earlier.bucket_us < perdure_outcomes.bucket_us
        AND (
            earlier.bucket_us > (
                SELECT max(outcome.value ->> 3) FROM json_each(:batch) AS outcome
                WHERE outcome.value ->> 0 = perdure_outcomes.organization AND outcome.value ->> 1 = perdure_outcomes.kind
            )
            OR EXISTS (
                SELECT 1 FROM perdure_breakers AS breakers
                WHERE breakers.organization = perdure_outcomes.organization AND breakers.kind = perdure_outcomes.kind
                AND breakers.until_us IS NOT NULL
            )
        )
    )
