-- Schedules: their documents are definitions, how each stands is one narrow row, what came of their instants is kept.

CREATE TABLE perdure_definitions_next (
    organization TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('queue', 'organization', 'kind', 'schedule')),
    name TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    document TEXT NOT NULL CHECK (json_valid(document)),
    actor TEXT NOT NULL,
    updated_us INTEGER NOT NULL,
    PRIMARY KEY (organization, type, name)
) STRICT;
INSERT INTO perdure_definitions_next (organization, type, name, version, document, actor, updated_us)
SELECT organization, type, name, version, document, actor, updated_us FROM perdure_definitions;
DROP TABLE perdure_definitions;
ALTER TABLE perdure_definitions_next RENAME TO perdure_definitions;
CREATE INDEX perdure_definitions_with_depth ON perdure_definitions (organization, type, name)
    WHERE type IN ('queue', 'organization') AND document ->> '$.depth' IS NOT NULL;
CREATE INDEX perdure_definitions_paused ON perdure_definitions (organization, type, name)
    WHERE type IN ('queue', 'organization') AND document ->> '$.paused';

-- How a schedule stands. next_us is the first instant that nothing was decided about, worked out from this version of its
-- document; look_us is when it is to be looked at, and null while nothing is to come of it.
CREATE TABLE perdure_schedules (
    organization TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    anchor_us INTEGER NOT NULL,
    next_us INTEGER,
    look_us INTEGER,
    waiting_us INTEGER,
    paused INTEGER NOT NULL DEFAULT 0 CHECK (paused IN (0, 1)),
    paused_by TEXT,
    paused_us INTEGER,
    last_us INTEGER,
    last_outcome TEXT CHECK (last_outcome IN ('fired', 'waiting', 'skipped')),
    last_reason TEXT,
    last_task_id TEXT,
    last_job_id TEXT,
    PRIMARY KEY (organization, name),
    CHECK (paused = 0 OR look_us IS NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX perdure_schedules_due ON perdure_schedules (look_us) WHERE look_us IS NOT NULL;

-- An instant that made a task or a job, or waits to make one: each once. open: what it made may not have ended.
CREATE TABLE perdure_fires (
    organization TEXT NOT NULL,
    schedule TEXT NOT NULL,
    instant_us INTEGER NOT NULL,
    cause TEXT NOT NULL CHECK (cause IN ('time', 'trigger', 'backfill')),
    outcome TEXT NOT NULL CHECK (outcome IN ('fired', 'waiting')),
    task_id TEXT,
    job_id TEXT,
    at_us INTEGER NOT NULL,
    open INTEGER NOT NULL CHECK (open IN (0, 1)),
    PRIMARY KEY (organization, schedule, instant_us),
    CHECK ((outcome = 'fired') = (task_id IS NOT NULL OR job_id IS NOT NULL)),
    CHECK (task_id IS NULL OR job_id IS NULL)
) STRICT, WITHOUT ROWID;
CREATE INDEX perdure_fires_open ON perdure_fires (organization, schedule, instant_us) WHERE open = 1;
CREATE INDEX perdure_fires_by_age ON perdure_fires (at_us);

-- Instants that made nothing: those that follow each other and have one reason are one row.
CREATE TABLE perdure_skips (
    organization TEXT NOT NULL,
    schedule TEXT NOT NULL,
    first_us INTEGER NOT NULL,
    last_us INTEGER NOT NULL,
    instants INTEGER NOT NULL CHECK (instants >= 1),
    reason TEXT NOT NULL CHECK (reason IN ('missed', 'paused', 'overlap', 'refused', 'changed')),
    text TEXT,
    at_us INTEGER NOT NULL,
    PRIMARY KEY (organization, schedule, first_us),
    CHECK (first_us <= last_us)
) STRICT, WITHOUT ROWID;
CREATE INDEX perdure_skips_by_age ON perdure_skips (at_us);
