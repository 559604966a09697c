-- The number of a job by its id.
SELECT j FROM jobs WHERE organization = :organization AND id = :job
