-- Take back the slots of tasks of a batch that have ended, but those of starts at a rate; returns for each the gate, if tasks wait
-- there.
DELETE FROM perdure_slots AS slots
WHERE n IN (SELECT value FROM json_each(:batch)) AND free_us IS NULL
RETURNING (
    SELECT live.gate FROM perdure_live AS live INDEXED BY perdure_live_at_gate WHERE live.gate = perdure_slots.gate LIMIT 1
)
