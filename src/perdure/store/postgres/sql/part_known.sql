-- What is stored of an attempt's parts: the highest sequence, whether a final one came, and the checksum under this key.
-- The task's row is locked already, so that none is added beside.
SELECT jsonb_build_array(
    (SELECT max(sequence) FROM perdure_parts AS parts WHERE n = %(n)s::bigint AND attempt_id = %(attempt)s::text),
    (SELECT bool_or(final) FROM perdure_parts AS parts WHERE n = %(n)s::bigint AND attempt_id = %(attempt)s::text),
    (
        SELECT jsonb_build_array(sha256, attempt_id, sequence)
        FROM perdure_parts AS parts
        WHERE n = %(n)s::bigint AND key = %(key)s::text AND named = (%(named)s::bigint = 1)
        AND (named OR attempt_id = %(attempt)s::text)
    )
)::text
