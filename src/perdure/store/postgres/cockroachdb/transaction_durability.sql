-- The server's time. Every commit is on the disks of most replicas before it is answered.
SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
