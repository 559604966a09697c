-- Let new places in line come after the copied ones, at the end and in front.
UPDATE perdure_counts AS counts
SET count = max(count, CASE state
    WHEN 'seq' THEN (SELECT coalesce(max(live.seq), 0) FROM perdure_live AS live)
    ELSE (SELECT coalesce(max(live.seq) + 4611686018427387904, 0) FROM perdure_live AS live WHERE live.seq < 0)
END)
WHERE lane = 0
