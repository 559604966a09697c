-- Keys of unique tasks.

-- Which task holds a key, and since when. until_us: when it loses it in any case. What came of a holder is told by its own
-- rows; a task that is removed before it has lost its key leaves the state in which it ended.
CREATE TABLE perdure_unique_keys (
    organization TEXT NOT NULL,
    key TEXT NOT NULL,
    task_id TEXT NOT NULL,
    taken_us INTEGER NOT NULL,
    until_us INTEGER,
    left_state TEXT,
    PRIMARY KEY (organization, key),
    CHECK (left_state IS NULL OR until_us IS NOT NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX perdure_unique_keys_left ON perdure_unique_keys (until_us) WHERE left_state IS NOT NULL;
