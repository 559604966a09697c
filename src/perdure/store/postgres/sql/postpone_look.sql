-- Since when a task is queued; its history keeps that. Its row is locked already.
SELECT queued_us FROM perdure_live AS live WHERE n = %(n)s::bigint
