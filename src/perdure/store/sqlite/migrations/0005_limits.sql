-- Gates that keep tasks from their lanes until there is room, and the slots that are taken at each.

CREATE TABLE perdure_gates (
    gate INTEGER PRIMARY KEY,
    organization TEXT NOT NULL,
    sort TEXT NOT NULL CHECK (sort IN ('order', 'concurrency', 'rate')),
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
    CHECK (sort <> 'order' OR slots = 1)
) STRICT;
CREATE INDEX perdure_gates_by_use ON perdure_gates (used_us);

-- Which task has a slot of which gate. One that was started at a rate keeps its slot until free_us, whatever becomes of it.
CREATE TABLE perdure_slots (
    gate INTEGER NOT NULL REFERENCES perdure_gates,
    n INTEGER NOT NULL,
    taken_us INTEGER NOT NULL,
    free_us INTEGER,
    PRIMARY KEY (gate, n, taken_us)
) STRICT, WITHOUT ROWID;
CREATE INDEX perdure_slots_by_task ON perdure_slots (n, gate) WHERE free_us IS NULL;
CREATE INDEX perdure_slots_by_time ON perdure_slots (free_us) WHERE free_us IS NOT NULL;

-- Whether a task has gates, at which it waits, and its turn there: the lowest first.
ALTER TABLE perdure_live ADD COLUMN gated INTEGER NOT NULL DEFAULT 0 CHECK (gated IN (0, 1));
ALTER TABLE perdure_live ADD COLUMN gate INTEGER CHECK (gate IS NULL OR state IN ('pending', 'retrying'));
ALTER TABLE perdure_live ADD COLUMN turn INTEGER CHECK ((turn IS NULL) = (gate IS NULL));
CREATE INDEX perdure_live_at_gate ON perdure_live (gate, turn) WHERE gate IS NOT NULL;

-- What waits at a gate is not due.
DROP INDEX perdure_live_due;
CREATE INDEX perdure_live_due ON perdure_live (due_us) WHERE state IN ('pending', 'retrying') AND waits = 0 AND gate IS NULL;
