-- The payload and the result of one task, with their encodings. A body is text where it is JSON, else hexadecimal.
SELECT json_build_array(
    CASE WHEN tasks.encoding = 'json' THEN convert_from(tasks.payload, 'UTF8') ELSE encode(tasks.payload, 'hex') END,
    tasks.encoding,
    CASE WHEN ends.result_encoding = 'json' THEN convert_from(ends.result, 'UTF8') ELSE encode(ends.result, 'hex') END,
    ends.result_encoding
)::text
FROM perdure_tasks AS tasks
LEFT JOIN perdure_ends AS ends ON ends.n = tasks.n
WHERE tasks.organization = %(organization)s::text AND tasks.n = %(n)s::bigint
