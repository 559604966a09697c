-- Make lanes that are not there yet.
INSERT OR IGNORE INTO perdure_lanes (organization, queue, kind, capabilities, priority)
SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4
FROM json_each(:batch)
