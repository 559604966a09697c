-- Stage the waiting tasks of a batch of cancels. Their rows are locked already.
-- stages: ending
SELECT coalesce(jsonb_agg(jsonb_build_object(
    'n', live.n, 'lane', live.lane, 'job', live.job, 'from_state', live.state, 'state', 'cancelled',
    'reason', asked.value ->> 2, 'actor', asked.value ->> 1, 'cancel_text', asked.value ->> 3,
    'cancel_note', asked.value ->> 4
)), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) AS asked (value)
JOIN perdure_live AS live ON live.n = ANY (ARRAY[(asked.value ->> 0)::bigint])
WHERE coalesce(live.state, '') IN ('pending', 'queued', 'retrying')
