-- When the next slot of a rate is free, or the next open breaker lets probes through.
SELECT least(
    (SELECT free_us FROM perdure_slots AS slots WHERE free_us >= %(since)s::bigint ORDER BY free_us LIMIT 1),
    (SELECT min(tell_us) FROM perdure_breakers AS breakers WHERE tell_us IS NOT NULL)
)
