-- When the next slot of a rate is free.
SELECT min(free_us) FROM perdure_slots AS slots INDEXED BY perdure_slots_by_time WHERE free_us IS NOT NULL
