-- Schedules of an organization by name, after one; only those of a set where that is named.
SELECT
    schedules.organization, schedules.name, definitions.version, definitions.document::text, definitions.actor,
    definitions.updated_us, schedules.anchor_us, schedules.next_us, schedules.look_us, schedules.waiting_us,
    schedules.paused, schedules.paused_by, schedules.paused_us, schedules.last_us, schedules.last_outcome,
    schedules.last_reason, schedules.last_task_id, schedules.last_job_id
FROM perdure_schedules AS schedules
JOIN perdure_definitions AS definitions
    ON definitions.organization = schedules.organization
    AND definitions.type = 'schedule'
    AND definitions.name = schedules.name
WHERE schedules.organization = %(organization)s::text AND schedules.name > %(after)s::text
AND (%(named)s::text IS NULL OR definitions.document ->> 'set' = %(named)s::text)
ORDER BY schedules.name
LIMIT %(count)s::bigint
