-- How the tasks of a batch stand, in the order of the batch: number, state, reason, lane, job, generation, initiator.
-- Locks those that live, in ascending order. One that ended while its row was waited for has a number and no state.
WITH asked AS MATERIALIZED (
    SELECT item.place, tasks.n, tasks.initiator
    FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS item (value, place)
    LEFT JOIN perdure_tasks AS tasks ON tasks.organization = ANY (ARRAY[item.value ->> 0]) AND tasks.id = ANY (ARRAY[item.value ->> 1])
),
locked AS MATERIALIZED (
    SELECT live.n, live.state, live.cancel_reason, live.lane, live.job, live.generation
    FROM (SELECT DISTINCT asked.n FROM asked) AS each
    JOIN perdure_live AS live ON live.n = ANY (ARRAY[each.n])
    ORDER BY live.n
    FOR NO KEY UPDATE OF live
)
SELECT coalesce(jsonb_agg(jsonb_build_array(
    asked.n, coalesce(locked.state, ends.state), coalesce(locked.cancel_reason, ends.reason),
    coalesce(locked.lane, ends.lane), coalesce(locked.job, ends.job), locked.generation, asked.initiator
) ORDER BY asked.place), '[]')::text
FROM asked
LEFT JOIN locked ON locked.n = asked.n
LEFT JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[asked.n])
