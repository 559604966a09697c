-- The cancels requested for what a worker holds.
SELECT coalesce(jsonb_agg(jsonb_build_array(attempt_id, cancel_ends_us - %(now)s::bigint)), '[]')::text
FROM perdure_live AS live
WHERE worker = %(worker)s::text AND attempt_id IS NOT NULL AND state = 'cancelling'
