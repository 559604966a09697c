-- The staged part of the frontier is being dealt with.
DELETE FROM perdure_frontier AS frontier
USING jsonb_to_recordset(%(ended)s::jsonb) AS ended (n bigint)
WHERE frontier.n = ANY (ARRAY[ended.n])
