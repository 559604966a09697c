-- What a worker may claim, and how many leases it holds.
SELECT json_array(
    json(kinds), json(queues), json(organizations), json(capabilities), capacity, ordered,
    (SELECT count(*) FROM perdure_live AS live INDEXED BY perdure_live_held WHERE live.worker = workers.id AND attempt_id IS NOT NULL)
)
FROM perdure_workers AS workers
WHERE id = :worker AND left_us IS NULL
