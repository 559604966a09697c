-- Announce to the other processes, without waiting for the disk.
SELECT set_config('synchronous_commit', 'off', true), pg_notify('perdure', %(text)s::text)
