-- Let a writing transaction, or all of a session, look at each row that it writes by an index, one after the other, whatever
-- statistics say or lack: a plan that was made while a table was small would read all of it once it is not. What has been
-- planned once is not planned again.
SELECT
    set_config('enable_seqscan', 'off', %(local)s::boolean),
    set_config('enable_bitmapscan', 'off', %(local)s::boolean),
    set_config('enable_hashjoin', 'off', %(local)s::boolean),
    set_config('enable_mergejoin', 'off', %(local)s::boolean),
    set_config('enable_material', 'off', %(local)s::boolean),
    set_config('enable_memoize', 'off', %(local)s::boolean),
    set_config('plan_cache_mode', 'force_generic_plan', %(local)s::boolean)
