-- Which of these transactions are over: [number, ...].
SELECT coalesce(jsonb_agg(asked.number::bigint), '[]')::text
FROM jsonb_array_elements_text(%(text)s::jsonb) AS asked (number)
WHERE pg_xact_status(asked.number::xid8) IS DISTINCT FROM 'in progress'
