-- Whether any of these attempts (number of the task, id) has a receipt after all: one that committed while its task was
-- locked, too late for the statement that ended the attempt.
SELECT EXISTS (
    SELECT 1
    FROM jsonb_array_elements(%(batch)s::jsonb) AS ended (value)
    JOIN perdure_receipts AS receipts
        ON receipts.n = (ended.value ->> 0)::bigint AND receipts.attempt_id = ended.value ->> 1
)
