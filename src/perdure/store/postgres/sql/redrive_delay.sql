-- Tasks that run again begin later: number, by how much. They are new here: nobody else has seen their rows.
UPDATE perdure_live AS live
SET due_us = live.due_us + (later.value ->> 1)::bigint, expires_us = live.expires_us + (later.value ->> 1)::bigint
FROM jsonb_array_elements(%(batch)s::jsonb) AS later (value)
WHERE live.n = ANY (ARRAY[(later.value ->> 0)::bigint])
