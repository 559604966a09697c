-- Keep the newest checkpoint of a task.
INSERT INTO perdure_checkpoints (n, generation, value, written_us)
SELECT DISTINCT ON (item.value ->> 0)
    (item.value ->> 0)::bigint, (item.value ->> 1)::bigint, item.value ->> 2, %(now)s::bigint
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS item (value, place)
ORDER BY item.value ->> 0 NULLS LAST, item.place DESC
ON CONFLICT (n) DO UPDATE
SET generation = excluded.generation, value = excluded.value, written_us = excluded.written_us
