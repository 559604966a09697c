-- Hand the ended waiting tasks of jobs on to what follows an end.
-- stages: ended
SELECT jsonb_agg(jsonb_build_object('n', n, 'job', job, 'good', false))::text
FROM jsonb_to_recordset(%(ending)s::jsonb) AS ending (n bigint, job bigint)
WHERE job IS NOT NULL
