-- How a job stands.
SELECT json_array(j, state, open, stopping, initiator)
FROM perdure_jobs AS jobs
WHERE organization = :organization AND id = :id
