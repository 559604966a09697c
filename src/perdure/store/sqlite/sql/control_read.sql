-- The cancels requested for what a worker holds.
SELECT json_group_array(json_array(attempt_id, cancel_ends_us - :now))
FROM perdure_live AS live INDEXED BY perdure_live_held
WHERE worker = :worker AND attempt_id IS NOT NULL AND state = 'cancelling'
