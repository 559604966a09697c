-- The staged part of the frontier is being dealt with.
DELETE FROM perdure_frontier AS frontier
WHERE n IN (SELECT ended.n FROM jsonb_to_recordset(%(ended)s::jsonb) AS ended (n bigint))
