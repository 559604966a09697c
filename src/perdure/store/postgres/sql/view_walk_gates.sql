-- Gates of one sort whose names begin with a kind, from a name and key on: number, name, key, and whether tasks wait there.
SELECT coalesce(jsonb_agg(jsonb_build_array(
    walked.gate, walked.name, walked.key,
    (SELECT live.turn FROM perdure_live AS live WHERE live.gate = walked.gate ORDER BY live.turn LIMIT 1) IS NOT NULL
) ORDER BY walked.name, walked.key), '[]')::text
FROM (
    SELECT gates.gate, gates.name, gates.key
    FROM perdure_gates AS gates
    WHERE gates.organization = %(organization)s::text AND gates.sort = %(sort)s::text
    AND (gates.name, gates.key) >= (%(name)s::text, %(key)s::text) AND gates.name < %(beyond)s::text
    ORDER BY gates.name, gates.key
    LIMIT %(stretch)s::bigint
) AS walked
