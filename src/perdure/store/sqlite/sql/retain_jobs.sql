-- Jobs that ended long enough ago, oldest first.
SELECT json_group_array(j)
FROM (
    SELECT j FROM jobs INDEXED BY jobs_finished
    WHERE finished_us IS NOT NULL AND finished_us < :before
    ORDER BY finished_us
    LIMIT :count
)
