-- Let the rest of a writing transaction look at each row that it writes by an index, one after the other, whatever
-- statistics say or lack: a plan that was made while a table was small would read all of it once it is not. What has been
-- planned once is not planned again.
SELECT
    set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true),
    set_config('enable_hashjoin', 'off', true),
    set_config('enable_mergejoin', 'off', true),
    set_config('enable_sort', 'off', true),
    set_config('enable_incremental_sort', 'off', true),
    set_config('enable_material', 'off', true),
    set_config('enable_memoize', 'off', true),
    set_config('plan_cache_mode', 'force_generic_plan', true)
