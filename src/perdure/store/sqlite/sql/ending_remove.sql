-- Remove the live rows of waiting tasks that end.
DELETE FROM perdure_live AS live WHERE n IN (SELECT n FROM ending) AND state IN ('pending', 'queued', 'retrying')
