-- Keep the newest progress and phase of a task; what is not said stays.
WITH said AS (
    SELECT (item.value ->> 0)::bigint AS n, item.value, item.place
    FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS item (value, place)
)
INSERT INTO perdure_progress AS progress (n, phase, done, total, succeeded, failed)
SELECT
    said.n,
    (array_agg(said.value ->> 1 ORDER BY said.place DESC) FILTER (WHERE said.value ->> 1 IS NOT NULL))[1],
    (array_agg((said.value ->> 2)::bigint ORDER BY said.place DESC) FILTER (WHERE said.value ->> 2 IS NOT NULL))[1],
    (array_agg((said.value ->> 3)::bigint ORDER BY said.place DESC) FILTER (WHERE said.value ->> 3 IS NOT NULL))[1],
    (array_agg((said.value ->> 4)::bigint ORDER BY said.place DESC) FILTER (WHERE said.value ->> 4 IS NOT NULL))[1],
    (array_agg((said.value ->> 5)::bigint ORDER BY said.place DESC) FILTER (WHERE said.value ->> 5 IS NOT NULL))[1]
FROM said
GROUP BY said.n
ON CONFLICT (n) DO UPDATE SET
    phase = coalesce(excluded.phase, progress.phase),
    done = coalesce(excluded.done, progress.done),
    total = coalesce(excluded.total, progress.total),
    succeeded = coalesce(excluded.succeeded, progress.succeeded),
    failed = coalesce(excluded.failed, progress.failed)
