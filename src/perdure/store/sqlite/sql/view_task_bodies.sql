-- The payload and the result of one task, with their encodings. A body is text where it is JSON, else hexadecimal.
SELECT json_array(
    iif(tasks.encoding = 'json', CAST(tasks.payload AS TEXT), iif(tasks.payload IS NULL, NULL, hex(tasks.payload))),
    tasks.encoding,
    iif(ends.result_encoding = 'json', CAST(ends.result AS TEXT), hex(ends.result)),
    ends.result_encoding
)
FROM perdure_tasks AS tasks
LEFT JOIN perdure_ends AS ends ON ends.n = tasks.n
WHERE tasks.organization = :organization AND tasks.n = :n
