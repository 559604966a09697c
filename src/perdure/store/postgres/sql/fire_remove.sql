-- Forget fires of a schedule by their instants: they made nothing after all.
DELETE FROM perdure_fires AS fires
WHERE organization = %(organization)s::text AND schedule = %(schedule)s::text
AND instant_us IN (SELECT value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb))
