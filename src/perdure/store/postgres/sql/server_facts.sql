-- Which process of the server answers, and when the server was started: another start may be another machine's clock.
SELECT pg_backend_pid(), (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint
