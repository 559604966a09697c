-- Those of the wanted attempts that an earlier, unanswered call has made already.
SELECT json_group_array(json_array(live.n, attempt_id))
FROM perdure_live AS live INDEXED BY perdure_live_held
WHERE live.worker = :worker AND attempt_id IS NOT NULL
AND attempt_id IN (SELECT value ->> 0 FROM json_each(:batch))
