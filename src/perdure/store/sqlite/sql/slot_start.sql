-- The tasks of a batch of [organization, id] start: from now on their slots of rates are free again after the time of that rate.
UPDATE perdure_slots AS slots
SET free_us = :now + (SELECT gates.per_us FROM perdure_gates AS gates WHERE gates.gate = slots.gate)
WHERE free_us IS NULL
AND n IN (
    SELECT tasks.n
    FROM json_each(:batch) AS started
    CROSS JOIN perdure_tasks AS tasks ON tasks.organization = started.value ->> 0 AND tasks.id = started.value ->> 1
)
AND (SELECT gates.sort FROM perdure_gates AS gates WHERE gates.gate = slots.gate) = 'rate'
