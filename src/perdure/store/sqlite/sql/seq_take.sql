-- Take places in line: the last of :count new ones. Places in front are those below 0.
UPDATE perdure_counts AS counts
SET count = count + :count
WHERE lane = 0 AND state = :line
RETURNING CASE :line WHEN 'front' THEN count - 4611686018427387904 ELSE count END
