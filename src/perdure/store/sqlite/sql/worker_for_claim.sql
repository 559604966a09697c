-- What a worker may claim, and how many leases it holds.
SELECT json_array(
    json(kinds), json(queues), json(organizations), json(capabilities), capacity, ordered,
    (SELECT count(*) FROM live INDEXED BY live_held WHERE live.worker = workers.id AND attempt_id IS NOT NULL)
)
FROM workers
WHERE id = :worker AND left_us IS NULL
