-- Take places in line: the last of :count new ones.
UPDATE meta SET value = value + :count WHERE key = :line RETURNING value
