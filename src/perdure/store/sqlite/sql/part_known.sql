-- What is stored of an attempt's parts: the highest sequence, whether a final one came, and the checksum under this key.
SELECT json_array(
    (SELECT max(sequence) FROM perdure_parts AS parts WHERE n = :n AND attempt_id = :attempt),
    (SELECT max(final) FROM perdure_parts AS parts WHERE n = :n AND attempt_id = :attempt),
    json((SELECT json_array(sha256, attempt_id, sequence) FROM perdure_parts AS parts
        WHERE n = :n AND key = :key AND named = :named AND (named = 1 OR attempt_id = :attempt)))
)
