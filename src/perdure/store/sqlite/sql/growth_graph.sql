-- The whole of a job: each task's name with those of its parents.
SELECT json_group_array(json_array(tasks.name, json((
    SELECT json_group_array(parent.name)
    FROM perdure_edges AS edges INDEXED BY perdure_edges_by_child
    CROSS JOIN perdure_tasks AS parent ON parent.n = edges.parent
    WHERE edges.child = tasks.n
))))
FROM perdure_tasks AS tasks INDEXED BY perdure_tasks_by_job
WHERE tasks.job = :job
