-- Those gates of a batch at which tasks wait. Nobody else writes before the commit.
SELECT json_group_array(DISTINCT gates.gate)
FROM json_each(:batch) AS asked
CROSS JOIN perdure_gates AS gates ON gates.gate = asked.value
WHERE EXISTS (SELECT 1 FROM perdure_live AS live INDEXED BY perdure_live_at_gate WHERE live.gate = gates.gate)
