-- Remove the events of tasks that go.
DELETE FROM perdure_events AS events
USING jsonb_array_elements_text(%(batch)s::jsonb) AS gone (value)
WHERE events.n = ANY (ARRAY[gone.value::bigint]) AND events.n IS NOT NULL
