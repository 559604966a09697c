-- How a job stands: number, open tasks, why it stops, initiator.
SELECT json_array(j, open, stopping, initiator)
FROM perdure_jobs AS jobs
WHERE organization = :organization AND id = :id
