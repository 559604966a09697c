-- How many tasks and dependencies a job has.
SELECT json_array(count(*), coalesce(sum((
    SELECT count(*) FROM perdure_edges AS edges INDEXED BY perdure_edges_by_child WHERE edges.child = tasks.n
)), 0))
FROM perdure_tasks AS tasks INDEXED BY perdure_tasks_by_job
WHERE tasks.job = :job
