-- The dead letters of a batch, in the order of the batch: number, whether discarded, whether its job is open, generation, initiator; null where there is none.
SELECT json_group_array(json_array(
    ends.n, ends.discarded_us IS NOT NULL, coalesce(jobs.open > 0, 0), ends.generation, tasks.initiator
) ORDER BY asked.key)
FROM json_each(:batch) AS asked
LEFT JOIN perdure_tasks AS tasks ON tasks.organization = :organization AND tasks.id = asked.value
LEFT JOIN perdure_ends AS ends ON ends.n = tasks.n AND ends.state = 'dead_lettered'
LEFT JOIN perdure_jobs AS jobs ON jobs.j = ends.job
