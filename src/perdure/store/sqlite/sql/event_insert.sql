-- Append lines of history that no other row tells.
INSERT INTO perdure_events (organization, n, job, at_us, generation, type, actor, initiator, data)
SELECT
    value ->> 0, value ->> 1, value ->> 2, :now, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7
FROM json_each(:batch)
