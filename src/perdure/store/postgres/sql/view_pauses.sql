-- What is paused in an organization: type, name, since when and by whom; at most %(count)s.
SELECT type, name, since_us, actor
FROM (
    SELECT type, name, coalesce(paused_us, updated_us) AS since_us, coalesce(paused_by, actor) AS actor
    FROM perdure_definitions AS definitions
    WHERE organization = %(organization)s::text AND type IN ('queue', 'organization', 'kind')
    AND document ->> 'paused' = 'true'
    UNION ALL
    SELECT 'schedule', name, paused_us, paused_by
    FROM perdure_schedules AS schedules
    WHERE organization = %(organization)s::text AND paused
) AS stopped
ORDER BY since_us NULLS LAST, type, name
LIMIT %(count)s::bigint
