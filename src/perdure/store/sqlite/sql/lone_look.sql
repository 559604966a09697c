-- What the submit of one task has to know: the number of the newest task, the last place in line, and whether anything
-- has a depth at all.
SELECT
    coalesce((SELECT max(n) FROM perdure_tasks AS tasks), 0),
    (SELECT count FROM perdure_counts AS counts WHERE lane = 0 AND state = 'seq'),
    EXISTS (
        SELECT 1 FROM perdure_definitions AS definitions INDEXED BY perdure_definitions_with_depth
        WHERE type IN ('queue', 'organization') AND document ->> '$.depth' IS NOT NULL
    )
