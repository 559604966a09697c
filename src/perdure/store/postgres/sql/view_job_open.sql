-- How many tasks of a job are in each unfinished state.
SELECT coalesce(json_object_agg(open.state, open.tasks), '{}')::text
FROM (
    SELECT live.state, count(*) AS tasks
    FROM perdure_live AS live
    WHERE live.job = (
        SELECT jobs.j FROM perdure_jobs AS jobs
        WHERE jobs.organization = %(organization)s::text AND jobs.j = %(j)s::bigint
    )
    GROUP BY live.state
) AS open
