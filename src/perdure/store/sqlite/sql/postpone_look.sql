-- Since when a task is queued; its history keeps that.
SELECT queued_us FROM perdure_live AS live WHERE n = :n
