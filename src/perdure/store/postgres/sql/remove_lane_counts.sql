-- Remove the counters of lanes that go, and what was to be added to them.
WITH changed AS (
    DELETE FROM perdure_count_changes AS changes
    WHERE changes.lane IN (SELECT value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb))
)
DELETE FROM perdure_counts AS counts
WHERE counts.lane IN (SELECT value::bigint FROM jsonb_array_elements_text(%(batch)s::jsonb))
