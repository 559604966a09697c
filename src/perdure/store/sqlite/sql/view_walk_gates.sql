-- Gates of one sort whose names begin with a kind, from a name and key on: number, name, key, and whether tasks wait there.
SELECT json_group_array(json_array(
    walked.gate, walked.name, walked.key,
    EXISTS (SELECT 1 FROM perdure_live AS live INDEXED BY perdure_live_at_gate WHERE live.gate = walked.gate)
) ORDER BY walked.name, walked.key)
FROM (
    SELECT gate, name, key FROM (
        SELECT gate, name, key FROM perdure_gates AS same
        WHERE organization = :organization AND sort = :sort AND name = :name AND key >= :key
        ORDER BY key
        LIMIT :stretch
    )
    UNION ALL
    SELECT gate, name, key FROM (
        SELECT gate, name, key FROM perdure_gates AS later
        WHERE organization = :organization AND sort = :sort AND name > :name AND name < :beyond
        ORDER BY name, key
        LIMIT :stretch
    )
    LIMIT :stretch
) AS walked
