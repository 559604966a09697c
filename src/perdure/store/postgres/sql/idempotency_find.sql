-- What the keys of a batch were used for, where they live.
SELECT coalesce(jsonb_agg(jsonb_build_array(asked.place - 1, known.id, known.request_hash)), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
JOIN perdure_idempotency AS known
    ON known.organization = ANY (ARRAY[asked.value ->> 0])
    AND known.principal = ANY (ARRAY[asked.value ->> 1])
    AND known.what = %(what)s::text
    AND known.key = ANY (ARRAY[asked.value ->> 2])
WHERE known.expires_us > %(now)s::bigint
