-- How the tasks of a batch stand: number and state.
SELECT coalesce(jsonb_agg(jsonb_build_array(asked.value::bigint, coalesce(live.state, ends.state))), '[]')::text
FROM jsonb_array_elements_text(%(batch)s::jsonb) AS asked (value)
LEFT JOIN perdure_live AS live ON live.n = ANY (ARRAY[asked.value::bigint])
LEFT JOIN perdure_ends AS ends ON ends.n = ANY (ARRAY[asked.value::bigint])
