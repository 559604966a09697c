-- What claims go by in the documents of queues, organizations and kinds; and gates that give keys their turn in a lane.

DROP INDEX perdure_definitions_paused;
CREATE INDEX perdure_definitions_of_flow ON perdure_definitions (organization, type, name)
    WHERE type IN ('queue', 'organization', 'kind') AND (
        document ->> '$.paused' OR document ->> '$.concurrency' IS NOT NULL OR document ->> '$.rate' IS NOT NULL
        OR document ->> '$.weight' IS NOT NULL
    );

CREATE TABLE perdure_gates_next (
    gate INTEGER PRIMARY KEY,
    organization TEXT NOT NULL,
    sort TEXT NOT NULL CHECK (sort IN ('order', 'fair', 'concurrency', 'rate')),
    name TEXT NOT NULL,
    key TEXT NOT NULL,
    slots INTEGER NOT NULL CHECK (slots >= 1),
    per_us INTEGER CHECK (per_us >= 1),
    when_full TEXT NOT NULL CHECK (when_full IN ('queue', 'cancel_newest', 'cancel_running')),
    -- When the task was submitted that said so; what a later one says holds.
    said_us INTEGER NOT NULL,
    -- When it was last used, within some minutes: one that nobody has used for long is removed.
    used_us INTEGER NOT NULL,
    UNIQUE (organization, sort, name, key),
    CHECK ((sort = 'rate') = (per_us IS NOT NULL)),
    CHECK (sort NOT IN ('order', 'fair') OR slots = 1)
) STRICT;
INSERT INTO perdure_gates_next (gate, organization, sort, name, key, slots, per_us, when_full, said_us, used_us)
SELECT gate, organization, sort, name, key, slots, per_us, when_full, said_us, used_us FROM perdure_gates;
DROP TABLE perdure_gates;
ALTER TABLE perdure_gates_next RENAME TO perdure_gates;
CREATE INDEX perdure_gates_by_use ON perdure_gates (used_us);
