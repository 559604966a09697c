-- The next stretch of unfinished tasks, newest first: number (none where it is another organization's) and position.
-- walks: both ways
SELECT json_group_array(json_array(iif(organization = :organization, n, NULL), n) ORDER BY n DESC)
FROM (
    SELECT n, organization
    FROM perdure_live AS live
    WHERE n < :before
    ORDER BY n DESC
    LIMIT :stretch
)
