-- The next stretch of leased tasks, newest first: number and position. All leases are sorted: workers' capacity bounds them.
-- walks: both ways
SELECT json_group_array(json_array(n, n) ORDER BY n DESC)
FROM (
    SELECT n
    FROM perdure_live AS live INDEXED BY perdure_live_held
    WHERE attempt_id IS NOT NULL AND organization = :organization AND n < :before
    ORDER BY n DESC
    LIMIT :stretch
)
