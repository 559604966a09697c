-- How the tasks of a batch stand, in the order of the batch: number, state, redacted, lane, job, generation, initiator,
-- organization.
-- Locks those that have ended, in ascending order. One that was redriven while its row was waited for has no state.
WITH asked AS MATERIALIZED (
    SELECT item.place, tasks.n, tasks.redacted_us, tasks.initiator, tasks.organization
    FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS item (value, place)
    LEFT JOIN perdure_tasks AS tasks ON tasks.organization = ANY (ARRAY[item.value ->> 0]) AND tasks.id = ANY (ARRAY[item.value ->> 1])
),
locked AS MATERIALIZED (
    SELECT ends.n, ends.state, ends.lane, ends.job, ends.generation
    FROM (SELECT DISTINCT asked.n FROM asked) AS each
    JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[each.n])
    ORDER BY ends.n
    FOR UPDATE OF ends
)
SELECT coalesce(jsonb_agg(jsonb_build_array(
    asked.n, coalesce(live.state, locked.state), asked.redacted_us IS NOT NULL, locked.lane, locked.job,
    coalesce(live.generation, locked.generation), asked.initiator, asked.organization
) ORDER BY asked.place), '[]')::text
FROM asked
LEFT JOIN locked ON locked.n = asked.n
LEFT JOIN perdure_live AS live ON live.n = ANY (ARRAY[asked.n])
