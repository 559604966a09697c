-- What the submit of one task has to know: the number of the newest task, the last place in line, whether anything has a
-- depth at all, and whether its idempotency key, if it has one, was used and lives: organization, principal, key, now.
SELECT
    coalesce((SELECT max(n) FROM perdure_tasks AS tasks), 0),
    (SELECT count FROM perdure_counts AS counts WHERE lane = 0 AND state = 'seq'),
    EXISTS (
        SELECT 1 FROM perdure_definitions AS definitions INDEXED BY perdure_definitions_with_depth
        WHERE type IN ('queue', 'organization') AND document ->> '$.depth' IS NOT NULL
    ),
    EXISTS (
        SELECT 1 FROM perdure_idempotency AS known
        WHERE organization = ?1 AND principal = ?2 AND what = 'task' AND key = ?3 AND expires_us > ?4
    )
