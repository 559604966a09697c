-- Whether an attempt has a receipt.
SELECT EXISTS (
    SELECT 1
    FROM perdure_tasks AS tasks
    JOIN perdure_receipts AS receipts ON receipts.n = tasks.n AND receipts.attempt_id = %(attempt)s::text
    WHERE tasks.organization = %(organization)s::text AND tasks.id = %(task)s::text
)
