-- Since when a task is queued; its history keeps that.
SELECT queued_us FROM live WHERE n = :n
