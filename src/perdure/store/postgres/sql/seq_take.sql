-- Take places in line: the last of :count new ones. Places in front are those below 0.
SELECT max(place)
FROM (
    SELECT CASE %(line)s::text WHEN 'front' THEN nextval('perdure_front') ELSE nextval('perdure_seq') END AS place
    FROM generate_series(1, %(count)s::bigint)
) AS taken
