-- When the next waiting task is past its TTL or its execution deadline.
SELECT least(
    (
        SELECT min(live.expires_us) FROM perdure_live AS live
        WHERE live.expires_us IS NOT NULL AND live.state IN ('pending', 'queued', 'retrying')
    ),
    (
        SELECT min(live.deadline_us) FROM perdure_live AS live
        WHERE live.deadline_us IS NOT NULL AND live.state IN ('pending', 'queued', 'retrying')
    )
)
