-- Write the live rows of new tasks that share everything but what is their own.
INSERT INTO perdure_live (n, organization, lane, job, waits, state, seq, due_us, expires_us, queued_us)
SELECT
    :first + (value ->> 0), :organization, :lane, :job, value ->> 6,
    value ->> 3, :before + (value ->> 4), value ->> 5, :now + :ttl_us, CASE value ->> 3 WHEN 'queued' THEN :now END
FROM json_each(:batch)
