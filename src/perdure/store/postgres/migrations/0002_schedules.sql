-- Schedules: their documents are definitions, how each stands is one narrow row, what came of their instants is kept.

ALTER TABLE perdure_definitions DROP CONSTRAINT perdure_definitions_type_check;
ALTER TABLE perdure_definitions ADD CONSTRAINT perdure_definitions_type_check
    CHECK (type IN ('queue', 'organization', 'kind', 'schedule'));

-- How a schedule stands. next_us is the first instant that nothing was decided about, worked out from this version of its
-- document; look_us is when it is to be looked at, and null while nothing is to come of it.
CREATE TABLE perdure_schedules (
    organization text COLLATE "C" NOT NULL,
    name text COLLATE "C" NOT NULL,
    version bigint NOT NULL,
    anchor_us bigint NOT NULL,
    next_us bigint,
    look_us bigint,
    waiting_us bigint,
    paused boolean NOT NULL DEFAULT false,
    paused_by text,
    paused_us bigint,
    last_us bigint,
    last_outcome text CHECK (last_outcome IN ('fired', 'waiting', 'skipped')),
    last_reason text,
    last_task_id text,
    last_job_id text,
    PRIMARY KEY (organization, name),
    CHECK (NOT paused OR look_us IS NULL)
);
CREATE INDEX perdure_schedules_due ON perdure_schedules (look_us) WHERE look_us IS NOT NULL;

-- An instant that made a task or a job, or waits to make one: each once. open: what it made may not have ended.
CREATE TABLE perdure_fires (
    organization text COLLATE "C" NOT NULL,
    schedule text COLLATE "C" NOT NULL,
    instant_us bigint NOT NULL,
    cause text NOT NULL CHECK (cause IN ('time', 'trigger', 'backfill')),
    outcome text NOT NULL CHECK (outcome IN ('fired', 'waiting')),
    task_id text COLLATE "C",
    job_id text COLLATE "C",
    at_us bigint NOT NULL,
    open boolean NOT NULL,
    PRIMARY KEY (organization, schedule, instant_us),
    CHECK ((outcome = 'fired') = (task_id IS NOT NULL OR job_id IS NOT NULL)),
    CHECK (task_id IS NULL OR job_id IS NULL)
);
CREATE INDEX perdure_fires_open ON perdure_fires (organization, schedule, instant_us) WHERE open;
CREATE INDEX perdure_fires_by_age ON perdure_fires (at_us);

-- Instants that made nothing: those that follow each other and have one reason are one row.
CREATE TABLE perdure_skips (
    organization text COLLATE "C" NOT NULL,
    schedule text COLLATE "C" NOT NULL,
    first_us bigint NOT NULL,
    last_us bigint NOT NULL,
    instants bigint NOT NULL CHECK (instants >= 1),
    reason text NOT NULL CHECK (reason IN ('missed', 'paused', 'overlap', 'refused', 'changed')),
    text text,
    at_us bigint NOT NULL,
    PRIMARY KEY (organization, schedule, first_us),
    CHECK (first_us <= last_us)
);
CREATE INDEX perdure_skips_by_age ON perdure_skips (at_us);
