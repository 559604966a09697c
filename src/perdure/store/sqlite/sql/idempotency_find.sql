-- What the keys of a batch were used for, where they live.
SELECT json_group_array(json_array(asked.key, known.id, known.request_hash))
FROM json_each(:batch) AS asked
CROSS JOIN perdure_idempotency AS known
    ON known.organization = asked.value ->> 0
    AND known.principal = asked.value ->> 1
    AND known.what = :what
    AND known.key = asked.value ->> 2
WHERE known.expires_us > :now
