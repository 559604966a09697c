-- Count how attempts ended: a batch of [organization, kind, bucket, beginning of the window, when it was leased, whether it
-- failed]. Those that began before the breaker's last change, or while it was open, are not counted. Nobody waits for a
-- row of another session. Returns for each kind since when is counted, until when its breaker is open, and the attempts and
-- failures: of the window while it is closed; not where none failed then, because that opens nothing.
WITH outcome AS MATERIALIZED (
    SELECT
        asked.organization, asked.kind, asked.bucket_us, asked.begin_us, coalesce(breakers.since_us, 0) AS since_us,
        breakers.until_us, count(*) AS attempts, count(*) FILTER (WHERE asked.failed) AS failures
    FROM (
        SELECT
            value ->> 0 AS organization, value ->> 1 AS kind, (value ->> 2)::bigint AS bucket_us,
            (value ->> 3)::bigint AS begin_us, (value ->> 4)::bigint AS leased_us, (value ->> 5)::boolean AS failed
        FROM jsonb_array_elements(%(batch)s::jsonb)
    ) AS asked
    LEFT JOIN perdure_breakers AS breakers ON breakers.organization = asked.organization AND breakers.kind = asked.kind
    WHERE asked.leased_us >= coalesce(breakers.until_us, breakers.since_us, 0)
    GROUP BY asked.organization, asked.kind, asked.bucket_us, asked.begin_us, breakers.since_us, breakers.until_us
),
counted AS (
    INSERT INTO perdure_outcomes AS outcomes (organization, kind, since_us, bucket_us, writer, attempts, failures)
    SELECT organization, kind, since_us, bucket_us, pg_backend_pid(), attempts, failures
    FROM outcome
    ORDER BY organization, kind
    ON CONFLICT (organization, kind, since_us, bucket_us, writer) DO UPDATE
    SET attempts = outcomes.attempts + excluded.attempts, failures = outcomes.failures + excluded.failures
    RETURNING organization, kind, since_us, bucket_us, writer, attempts, failures
)
SELECT
    outcome.organization, outcome.kind, outcome.since_us, outcome.until_us,
    CASE WHEN outcome.failures > 0 OR outcome.until_us IS NOT NULL THEN (
        SELECT jsonb_build_array(
            counted.attempts + coalesce(sum(others.attempts), 0), counted.failures + coalesce(sum(others.failures), 0)
        )::text
        FROM perdure_outcomes AS others
        WHERE others.organization = outcome.organization AND others.kind = outcome.kind
        AND others.since_us = outcome.since_us AND others.bucket_us <= counted.bucket_us
        AND (others.bucket_us > outcome.begin_us OR outcome.until_us IS NOT NULL)
        AND (others.bucket_us <> counted.bucket_us OR others.writer <> counted.writer)
    ) END
FROM outcome
JOIN counted ON counted.organization = outcome.organization AND counted.kind = outcome.kind
