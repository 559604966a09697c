-- The next ends of a lane whose results have had their time, oldest first: instant and task.
SELECT json_group_array(json_array(finished_us, n))
FROM (
    SELECT ends.finished_us, ends.n
    FROM perdure_ends AS ends INDEXED BY perdure_ends_alone
    WHERE ends.job IS NULL AND ends.lane = :lane AND ends.state = :state
    AND (ends.finished_us, ends.n) > (:done_us, :done)
    AND ends.finished_us < :before
    ORDER BY ends.finished_us, ends.n
    LIMIT :count
)
