-- Keep the newest progress and phase of a task; what is not said stays.
INSERT INTO perdure_progress (n, phase, done, total, succeeded, failed)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5
FROM json_each(:batch)
WHERE true
ON CONFLICT DO UPDATE SET
    phase = coalesce(excluded.phase, phase),
    done = coalesce(excluded.done, done),
    total = coalesce(excluded.total, total),
    succeeded = coalesce(excluded.succeeded, succeeded),
    failed = coalesce(excluded.failed, failed)
