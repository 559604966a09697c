-- Remove the live rows of waiting tasks that end.
DELETE FROM live WHERE n IN (SELECT n FROM ending) AND state IN ('pending', 'queued', 'retrying')
