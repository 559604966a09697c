-- Tasks of jobs that may go.
SELECT json_group_array(n)
FROM (
    SELECT tasks.n
    FROM json_each(:batch) AS gone
    CROSS JOIN perdure_tasks AS tasks INDEXED BY perdure_tasks_by_job ON tasks.job = gone.value
    LIMIT :count
)
