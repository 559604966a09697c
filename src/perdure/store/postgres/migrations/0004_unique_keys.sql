-- Keys of unique tasks.

-- Which task holds a key, and since when. until_us: when it loses it in any case. What came of a holder is told by its own
-- rows; a task that is removed before it has lost its key leaves the state in which it ended.
CREATE TABLE perdure_unique_keys (
    organization text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    task_id text COLLATE "C" NOT NULL,
    taken_us bigint NOT NULL,
    until_us bigint,
    left_state text COLLATE "C",
    PRIMARY KEY (organization, key),
    CHECK (left_state IS NULL OR until_us IS NOT NULL)
) WITH (
    -- Every submit with a key writes its row, be it only to keep others waiting.
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_insert_threshold = -1,
    autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX perdure_unique_keys_left ON perdure_unique_keys (until_us) WHERE left_state IS NOT NULL;
