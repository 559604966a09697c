-- Whether anything is left to cascade.
SELECT EXISTS (SELECT 1 FROM perdure_frontier AS frontier) OR EXISTS (
    SELECT 1
    FROM perdure_jobs AS jobs
    JOIN perdure_live AS live ON live.job = jobs.j
    WHERE jobs.stopping IS NOT NULL AND jobs.open > 0 AND live.state <> 'cancelling'
)
