-- When the next slot of a rate is free: a batch of gates as [organization, sort, name, key].
SELECT coalesce(jsonb_agg((
    SELECT min(slots.free_us) FROM perdure_gates AS gates
    JOIN perdure_slots AS slots ON slots.gate = gates.gate
    WHERE gates.organization = asked.value ->> 0 AND gates.sort = asked.value ->> 1
    AND gates.name = asked.value ->> 2 AND gates.key = asked.value ->> 3 AND slots.free_us > %(now)s::bigint
) ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
