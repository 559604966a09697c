-- The next queued tasks of a lane, in order, that may still start.
SELECT json_group_array(json_array(seq, n))
FROM (
    SELECT seq, n
    FROM perdure_live AS live INDEXED BY perdure_live_ready
    WHERE state = 'queued' AND lane = :lane AND seq > :after
    AND (expires_us IS NULL OR expires_us > :now)
    AND (deadline_us IS NULL OR deadline_us > :now)
    ORDER BY seq
    LIMIT :count
)
