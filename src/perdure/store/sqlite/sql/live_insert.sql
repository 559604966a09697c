-- Write the live rows of new tasks.
INSERT INTO live (n, organization, lane, job, waits, state, seq, due_us, expires_us, queued_us)
SELECT
    value ->> 0, value ->> 1, value ->> 3, value ->> 4, value ->> 18,
    value ->> 25, value ->> 26, value ->> 27, value ->> 28, CASE value ->> 25 WHEN 'queued' THEN :now END
FROM json_each(:batch)
