-- Bounds of what may take how long, for this transaction alone.
SELECT
    set_config('lock_timeout', %(lock_timeout_ms)s::text, %(local)s::boolean),
    set_config('statement_timeout', %(statement_timeout_ms)s::text, %(local)s::boolean),
    set_config('idle_in_transaction_session_timeout', %(idle_timeout_ms)s::text, %(local)s::boolean)
