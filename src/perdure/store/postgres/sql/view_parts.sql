-- The parts of a task's result by attempt and sequence. A body is text where it is JSON, else hexadecimal.
WITH claims AS MATERIALIZED (
    SELECT attempts.id, attempts.fence FROM perdure_attempts AS attempts WHERE attempts.n = %(n)s::bigint
    UNION ALL
    SELECT live.attempt_id, live.fence
    FROM perdure_live AS live
    WHERE live.n = %(n)s::bigint AND live.attempt_id IS NOT NULL
)
SELECT coalesce(json_agg(json_build_object(
    'attempt_id', parts.attempt_id,
    'sequence', parts.sequence,
    'key', parts.key,
    'sha256', parts.sha256,
    'final', parts.final,
    'superseded', parts.attempt_id IS DISTINCT FROM coalesce(live.attempt_id, ends.attempt_id),
    'text', CASE WHEN parts.encoding = 'json' THEN convert_from(parts.data, 'UTF8') ELSE encode(parts.data, 'hex') END,
    'encoding', parts.encoding,
    'at_us', parts.written_us
) ORDER BY claims.fence NULLS FIRST, parts.attempt_id NULLS LAST, parts.sequence), '[]')::text
FROM perdure_tasks AS tasks
JOIN perdure_parts AS parts ON parts.n = tasks.n
LEFT JOIN claims ON claims.id = parts.attempt_id
LEFT JOIN perdure_live AS live ON live.n = tasks.n
LEFT JOIN perdure_ends AS ends ON ends.n = tasks.n
WHERE tasks.organization = %(organization)s::text AND tasks.n = %(n)s::bigint
