-- A part that an earlier attempt stored becomes a part of this one, in its own place.
UPDATE perdure_parts AS parts
SET attempt_id = :attempt, sequence = :sequence, final = :final
WHERE n = :n AND key = :key AND named = 1 AND attempt_id <> :attempt
