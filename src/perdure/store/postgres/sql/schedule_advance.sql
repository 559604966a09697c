-- Move a schedule that was taken. A resumed one is paused no more.
UPDATE perdure_schedules AS schedules
SET next_us = %(next_us)s::bigint,
    look_us = CASE WHEN paused AND NOT %(resumed)s::boolean THEN NULL ELSE %(look_us)s::bigint END,
    waiting_us = %(waiting_us)s::bigint,
    paused_by = CASE WHEN %(resumed)s::boolean THEN NULL ELSE paused_by END,
    paused_us = CASE WHEN %(resumed)s::boolean THEN NULL ELSE paused_us END,
    paused = paused AND NOT %(resumed)s::boolean,
    last_us = coalesce(%(last_us)s::bigint, last_us),
    last_outcome = CASE WHEN %(last_us)s::bigint IS NULL THEN last_outcome ELSE %(last_outcome)s::text END,
    last_reason = CASE WHEN %(last_us)s::bigint IS NULL THEN last_reason ELSE %(last_reason)s::text END,
    last_task_id = CASE WHEN %(last_us)s::bigint IS NULL THEN last_task_id ELSE %(last_task_id)s::text END,
    last_job_id = CASE WHEN %(last_us)s::bigint IS NULL THEN last_job_id ELSE %(last_job_id)s::text END
WHERE organization = %(organization)s::text AND name = %(name)s::text
