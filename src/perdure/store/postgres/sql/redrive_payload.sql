-- Give a task that runs again another payload.
UPDATE perdure_tasks AS tasks
SET payload = CASE %(encoding)s::text
        WHEN 'json' THEN convert_to(%(payload)s::text, 'UTF8')
        ELSE decode(%(payload)s::text, 'hex')
    END,
    encoding = %(encoding)s::text,
    redacted_us = NULL
WHERE n = %(n)s::bigint
