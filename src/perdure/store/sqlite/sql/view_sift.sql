-- Those of a stretch of tasks that a filter lets through, by number, in the order given. An empty list filters nothing.
SELECT json_group_array(asked.value ORDER BY asked.key)
FROM json_each(:ns) AS asked
CROSS JOIN perdure_tasks AS tasks ON tasks.n = asked.value
LEFT JOIN perdure_live AS live ON live.n = tasks.n
LEFT JOIN perdure_ends AS ends ON ends.n = tasks.n
WHERE tasks.organization = :organization
AND (:states = '[]' OR coalesce(live.state, ends.state) IN (SELECT value FROM json_each(:states)))
AND (:lanes IS NULL OR tasks.lane IN (SELECT value FROM json_each(:lanes)))
AND (:reasons = '[]' OR ends.reason IN (SELECT value FROM json_each(:reasons)))
AND (:discarded IS NULL OR (ends.discarded_us IS NOT NULL) = :discarded)
AND (:submitters = '[]' OR tasks.principal IN (SELECT value FROM json_each(:submitters)))
AND (:ended_from IS NULL OR ends.finished_us >= :ended_from)
AND (:ended_before IS NULL OR ends.finished_us < :ended_before)
AND NOT EXISTS (
    SELECT 1
    FROM json_each(:labels) AS wanted
    WHERE NOT EXISTS (
        SELECT 1
        FROM json_each(tasks.options, '$.labels') AS label
        WHERE label.key = wanted.value ->> 0 AND label.value = wanted.value ->> 1
    )
)
