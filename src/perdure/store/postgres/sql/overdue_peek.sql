-- Whether a waiting task is past its TTL or its execution deadline.
SELECT EXISTS (
    SELECT 1 FROM perdure_live AS live
    WHERE expires_us IS NOT NULL AND state IN ('pending', 'queued', 'retrying') AND expires_us <= %(now)s::bigint
) OR EXISTS (
    SELECT 1 FROM perdure_live AS live
    WHERE deadline_us IS NOT NULL AND state IN ('pending', 'queued', 'retrying') AND deadline_us <= %(now)s::bigint
)
