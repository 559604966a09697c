-- Those of many tasks that have ended. A result is text where it is JSON, else hexadecimal.
SELECT coalesce(json_agg(json_build_array(
    tasks.id,
    ends.state,
    ends.reason,
    CASE WHEN ends.result_encoding = 'json' THEN convert_from(ends.result, 'UTF8') ELSE encode(ends.result, 'hex') END,
    ends.result_encoding,
    ends.error::json,
    ends.summary
) ORDER BY asked.place), '[]')::text
FROM jsonb_array_elements_text(%(batch)s::jsonb) WITH ORDINALITY AS asked (id, place)
CROSS JOIN LATERAL (
    SELECT found.n, found.id FROM perdure_tasks AS found
    WHERE found.organization = %(organization)s::text AND found.id = asked.id
    LIMIT 1
) AS tasks
JOIN perdure_ends AS ends ON ends.n = tasks.n
