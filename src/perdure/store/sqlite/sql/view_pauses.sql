-- What is paused in an organization: type, name, since when and by whom; at most :count.
SELECT type, name, since_us, actor
FROM (
    SELECT type, name, coalesce(paused_us, updated_us) AS since_us, coalesce(paused_by, actor) AS actor
    FROM perdure_definitions AS definitions
    WHERE organization = :organization AND type IN ('queue', 'organization', 'kind') AND document ->> '$.paused'
    UNION ALL
    SELECT 'schedule', name, paused_us, paused_by
    FROM perdure_schedules AS schedules
    WHERE organization = :organization AND paused
)
ORDER BY since_us, type, name
LIMIT :count
