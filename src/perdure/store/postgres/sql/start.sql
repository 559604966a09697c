-- The handler has begun. Its row is locked already.
UPDATE perdure_live AS live
SET state = 'running',
    started_us = least(
        %(now)s::bigint, greatest(live.leased_us, %(now)s::bigint - coalesce((begun.value ->> 1)::bigint, 0))
    )
FROM jsonb_array_elements(%(batch)s::jsonb) AS begun (value)
WHERE live.n = ANY (ARRAY[(begun.value ->> 0)::bigint]) AND live.state = 'leased'
