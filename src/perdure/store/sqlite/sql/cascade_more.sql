-- Whether anything is left to cascade.
SELECT EXISTS (SELECT 1 FROM frontier) OR EXISTS (
    SELECT 1
    FROM jobs INDEXED BY jobs_stopping
    CROSS JOIN live INDEXED BY live_by_job ON live.job = jobs.j
    WHERE jobs.stopping IS NOT NULL AND jobs.open > 0 AND live.state <> 'cancelling'
)
