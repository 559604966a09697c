-- Ask the holders of the tasks of a batch to stop.
UPDATE perdure_live AS live
SET state = 'cancelling',
    cancel_us = :now,
    cancel_ends_us = :now + (asked.value ->> 5),
    cancel_actor = asked.value ->> 1,
    cancel_reason = asked.value ->> 2,
    cancel_text = asked.value ->> 3,
    cancel_note = asked.value ->> 4
FROM json_each(:batch) AS asked
WHERE live.n = asked.value ->> 0 AND live.state IN ('leased', 'running')
