-- Remove the live rows of waiting tasks that end.
DELETE FROM perdure_live AS live
USING jsonb_to_recordset(%(ending)s::jsonb) AS ending (n bigint)
WHERE live.n = ANY (ARRAY[ending.n]) AND live.state IN ('pending', 'queued', 'retrying')
