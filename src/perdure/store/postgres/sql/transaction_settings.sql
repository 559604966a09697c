-- What holds for this transaction alone, and last the server's time. Nothing is set for the session: it may be a pooler's.
-- A write that must survive a power loss is never left to a server that does not wait for its disk.
SELECT
    set_config('lock_timeout', %(lock_timeout_ms)s::text, true),
    set_config('statement_timeout', %(statement_timeout_ms)s::text, true),
    set_config('idle_in_transaction_session_timeout', %(idle_timeout_ms)s::text, true),
    set_config('jit', 'off', true),
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
