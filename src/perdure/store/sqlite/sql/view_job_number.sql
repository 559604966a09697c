-- The number of a job by its id.
SELECT j FROM perdure_jobs AS jobs WHERE organization = :organization AND id = :job
