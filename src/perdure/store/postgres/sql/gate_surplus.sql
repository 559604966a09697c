-- The tasks at gates that have to make way for newer ones, as [organization, id]: all but the newest of those that wait there or
-- have a slot. A batch of [gate, how many may stay].
SELECT coalesce(jsonb_agg(jsonb_build_array(tasks.organization, tasks.id) ORDER BY tasks.n), '[]')::text
FROM jsonb_array_elements(%(batch)s::jsonb) AS asked (value)
CROSS JOIN LATERAL (
    SELECT at_gate.n
    FROM (
        SELECT slots.n FROM perdure_slots AS slots
        WHERE slots.gate = (asked.value ->> 0)::bigint AND slots.free_us IS NULL
        UNION ALL
        SELECT waiting.n FROM perdure_live AS waiting WHERE waiting.gate = (asked.value ->> 0)::bigint
    ) AS at_gate
    ORDER BY at_gate.n DESC
    OFFSET (asked.value ->> 1)::bigint
) AS known
CROSS JOIN LATERAL (SELECT found.state FROM perdure_live AS found WHERE found.n = known.n LIMIT 1) AS live
CROSS JOIN LATERAL (
    SELECT found.organization, found.id, found.n FROM perdure_tasks AS found WHERE found.n = known.n LIMIT 1
) AS tasks
WHERE live.state <> 'cancelling'
