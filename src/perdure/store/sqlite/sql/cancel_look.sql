-- How the tasks of a batch stand, in the order of the batch: number, state, reason, lane, job, earlier cancel, generation, initiator.
SELECT json_group_array(json_array(
    tasks.n, coalesce(live.state, ends.state), coalesce(live.cancel_reason, ends.reason),
    coalesce(live.lane, ends.lane), coalesce(live.job, ends.job), live.generation, tasks.initiator
) ORDER BY asked.key)
FROM json_each(:batch) AS asked
LEFT JOIN perdure_tasks AS tasks ON tasks.organization = asked.value ->> 0 AND tasks.id = asked.value ->> 1
LEFT JOIN perdure_live AS live ON live.n = tasks.n
LEFT JOIN perdure_ends AS ends ON ends.n = tasks.n
