-- Whether this transaction waits for the disk, and last the server's time. A write that must survive a power loss is never
-- left to a server that does not wait.
SELECT
    set_config(
        'synchronous_commit',
        CASE
            WHEN NOT %(durable)s::boolean THEN 'off'
            WHEN current_setting('synchronous_commit') = 'off' THEN 'on'
            ELSE current_setting('synchronous_commit')
        END,
        true
    ),
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
