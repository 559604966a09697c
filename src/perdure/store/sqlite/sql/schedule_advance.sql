-- Move a schedule that was taken. A resumed one is paused no more.
UPDATE perdure_schedules AS schedules
SET next_us = :next_us,
    look_us = CASE WHEN paused AND NOT :resumed THEN NULL ELSE :look_us END,
    waiting_us = :waiting_us,
    paused_by = CASE WHEN :resumed THEN NULL ELSE paused_by END,
    paused_us = CASE WHEN :resumed THEN NULL ELSE paused_us END,
    paused = CASE WHEN :resumed THEN 0 ELSE paused END,
    last_us = coalesce(:last_us, last_us),
    last_outcome = CASE WHEN :last_us IS NULL THEN last_outcome ELSE :last_outcome END,
    last_reason = CASE WHEN :last_us IS NULL THEN last_reason ELSE :last_reason END,
    last_task_id = CASE WHEN :last_us IS NULL THEN last_task_id ELSE :last_task_id END,
    last_job_id = CASE WHEN :last_us IS NULL THEN last_job_id ELSE :last_job_id END
WHERE organization = :organization AND name = :name
