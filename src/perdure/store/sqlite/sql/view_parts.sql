-- The parts of a task's result by attempt and sequence. A body is text where it is JSON, else hexadecimal.
WITH claims AS MATERIALIZED (
    SELECT attempts.id, attempts.fence FROM perdure_attempts AS attempts WHERE attempts.n = :n
    UNION ALL
    SELECT live.attempt_id, live.fence FROM perdure_live AS live WHERE live.n = :n AND live.attempt_id IS NOT NULL
)
SELECT json_group_array(json_object(
    'attempt_id', parts.attempt_id,
    'sequence', parts.sequence,
    'key', parts.key,
    'sha256', parts.sha256,
    'final', json(iif(parts.final, 'true', 'false')),
    'superseded', json(iif(parts.attempt_id IS coalesce(live.attempt_id, ends.attempt_id), 'false', 'true')),
    'text', iif(parts.encoding = 'json', CAST(parts.data AS TEXT), hex(parts.data)),
    'encoding', parts.encoding,
    'at_us', parts.written_us
) ORDER BY claims.fence, parts.attempt_id, parts.sequence)
FROM perdure_tasks AS tasks
CROSS JOIN perdure_parts AS parts ON parts.n = tasks.n
LEFT JOIN claims ON claims.id = parts.attempt_id
LEFT JOIN perdure_live AS live ON live.n = tasks.n
LEFT JOIN perdure_ends AS ends ON ends.n = tasks.n
WHERE tasks.organization = :organization AND tasks.n = :n
