-- A part that an earlier attempt stored becomes a part of this one, in its own place.
UPDATE perdure_parts AS parts
SET attempt_id = %(attempt)s::text, sequence = %(sequence)s::bigint, final = %(final)s::bigint = 1
WHERE n = %(n)s::bigint AND key = %(key)s::text AND named AND attempt_id <> %(attempt)s::text
