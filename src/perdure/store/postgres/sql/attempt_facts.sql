-- What the ends of live attempts are decided by: place in the batch, then the facts.
SELECT coalesce(jsonb_agg(jsonb_build_array(
    asked.place - 1, %(now)s::bigint, live.state, live.failures, live.losses, live.snoozes, live.hand_backs,
    tasks.max_attempts, tasks.max_losses, tasks.on_loss, live.deadline_us, live.expires_us,
    coalesce((queue.document ->> 'dead_letters')::boolean, true),
    receipts.attempt_id, receipts.partly,
    CASE receipts.encoding
        WHEN 'json' THEN convert_from(receipts.result, 'UTF8')
        ELSE encode(receipts.result, 'hex')
    END,
    receipts.encoding, receipts.summary, tasks.retry
)), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
JOIN perdure_tasks AS tasks ON tasks.organization = ANY (ARRAY[asked.value ->> 0]) AND tasks.id = ANY (ARRAY[asked.value ->> 1])
JOIN perdure_live AS live ON live.n = ANY (ARRAY[tasks.n]) AND live.attempt_id = asked.value ->> 2
JOIN perdure_lanes AS lanes ON lanes.lane = live.lane
LEFT JOIN perdure_definitions AS queue
    ON queue.organization = lanes.organization AND queue.type = 'queue' AND queue.name = lanes.queue
LEFT JOIN perdure_receipts AS receipts ON receipts.n = ANY (ARRAY[live.n]) AND receipts.attempt_id = live.attempt_id
