-- When the next waiting task is past its TTL or its execution deadline, if that is until the given instant.
SELECT least(
    (
        SELECT min(live.expires_us) FROM perdure_live AS live
        WHERE live.expires_us IS NOT NULL AND live.state IN ('pending', 'queued', 'retrying')
        AND live.expires_us >= %(since)s::bigint AND live.expires_us <= %(until)s::bigint
    ),
    (
        SELECT min(live.deadline_us) FROM perdure_live AS live
        WHERE live.deadline_us IS NOT NULL AND live.state IN ('pending', 'queued', 'retrying')
        AND live.deadline_us >= %(since)s::bigint AND live.deadline_us <= %(until)s::bigint
    )
)
