-- Whether an attempt has a receipt.
SELECT EXISTS (
    SELECT 1
    FROM perdure_tasks AS tasks
    CROSS JOIN perdure_receipts AS receipts ON receipts.n = tasks.n AND receipts.attempt_id = :attempt
    WHERE tasks.organization = :organization AND tasks.id = :task
)
