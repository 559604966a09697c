-- When the next slot of a rate is free.
SELECT free_us FROM perdure_slots AS slots WHERE free_us IS NOT NULL ORDER BY free_us LIMIT 1
