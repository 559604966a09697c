-- How the holders of keys stand, and the tasks that ask for them, in the order of the batch (organization, key, task):
-- holder, since when, its state, whether it has a job, and the state of the task that asks, if it is there already. The
-- keys are locked before: what their last holders did is seen.
SELECT coalesce(jsonb_agg(jsonb_build_array(
    keys.task_id, keys.taken_us, coalesce(live.state, ends.state, keys.left_state), held.job IS NOT NULL,
    coalesce(own_live.state, own_ends.state)
) ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) WITH ORDINALITY AS asked (value, place)
JOIN perdure_unique_keys AS keys
    ON keys.organization = ANY (ARRAY[asked.value ->> 0]) AND keys.key = ANY (ARRAY[asked.value ->> 1])
LEFT JOIN perdure_tasks AS held
    ON held.organization = ANY (ARRAY[keys.organization]) AND held.id = ANY (ARRAY[keys.task_id])
LEFT JOIN perdure_live AS live ON live.n = ANY (ARRAY[held.n])
LEFT JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[held.n])
LEFT JOIN perdure_tasks AS own ON own.organization = ANY (ARRAY[asked.value ->> 0]) AND own.id = ANY (ARRAY[asked.value ->> 2])
LEFT JOIN perdure_live AS own_live ON own_live.n = ANY (ARRAY[own.n])
LEFT JOIN perdure_ends AS own_ends ON own_ends.n = ANY (ARRAY[own.n])
