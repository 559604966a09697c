-- Look at tasks anew whose parents were counted anew.
INSERT OR IGNORE INTO touched (child, good, bad, excused)
SELECT value, 0, 0, 0
FROM json_each(:batch)
