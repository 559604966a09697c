-- When the next slot of a rate is free, or the next open breaker lets probes through.
SELECT min(instant_us)
FROM (
    SELECT min(free_us) AS instant_us FROM perdure_slots AS slots INDEXED BY perdure_slots_by_time WHERE free_us IS NOT NULL
    UNION ALL
    SELECT min(tell_us) FROM perdure_breakers AS breakers INDEXED BY perdure_breakers_to_tell WHERE tell_us IS NOT NULL
)
