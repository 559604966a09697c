-- Give a task that runs again another payload.
UPDATE perdure_tasks AS tasks
SET payload = CASE :encoding WHEN 'json' THEN CAST(:payload AS BLOB) ELSE unhex(:payload) END,
    encoding = :encoding,
    redacted_us = NULL
WHERE n = :n
