-- Whether a task is due that waits for its time only.
SELECT EXISTS (
    SELECT 1 FROM perdure_live AS live
    WHERE state IN ('pending', 'retrying') AND waits = 0 AND due_us <= %(now)s::bigint
)
