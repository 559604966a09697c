-- Let the rest of a reading transaction take the plans that look at the fewest rows, whatever statistics say or lack.
-- Pages cost nothing here, so that no order of the table on disk makes a walk past other rows look cheap.
SELECT
    set_config('enable_seqscan', 'off', true),
    set_config('enable_bitmapscan', 'off', true),
    set_config('random_page_cost', '0', true),
    set_config('seq_page_cost', '0', true),
    set_config('max_parallel_workers_per_gather', '0', true),
    set_config('jit', 'off', true)
