-- The whole first schema. Times are microseconds since 1970 UTC by the store's clock; n is a task's number in this file.
-- A task's specification is written once (tasks); exactly one of live and ends holds how it stands.
-- What may be one of several texts is checked by OR, because SQLite makes a table of an IN of more than two for each row.

CREATE TABLE perdure_meta (
    key TEXT PRIMARY KEY,
    value ANY NOT NULL
) STRICT, WITHOUT ROWID;

-- What a claim chooses: one (organization, queue, kind, capability set, priority).
CREATE TABLE perdure_lanes (
    lane INTEGER PRIMARY KEY,
    organization TEXT NOT NULL,
    queue TEXT NOT NULL,
    kind TEXT NOT NULL,
    capabilities TEXT NOT NULL DEFAULT '[]' CHECK (json_valid(capabilities)),
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 9),
    unroutable_since_us INTEGER,
    UNIQUE (organization, queue, kind, capabilities, priority)
) STRICT;

CREATE TABLE perdure_jobs (
    j INTEGER PRIMARY KEY,
    organization TEXT NOT NULL,
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    policy TEXT NOT NULL CHECK (policy = 'fail' OR policy = 'continue' OR policy = 'cancel_job'),
    state TEXT NOT NULL CHECK (
        state = 'pending' OR state = 'running' OR state = 'succeeded' OR state = 'partially_succeeded'
        OR state = 'failed' OR state = 'cancelled'
    ),
    principal TEXT NOT NULL,
    initiator TEXT NOT NULL,
    metadata TEXT,
    idempotency_key TEXT,
    created_us INTEGER NOT NULL,
    started_us INTEGER,
    finished_us INTEGER,
    failing_since_us INTEGER,
    total INTEGER NOT NULL,
    open INTEGER NOT NULL CHECK (open BETWEEN 0 AND total),
    succeeded INTEGER NOT NULL DEFAULT 0 CHECK (succeeded >= 0),
    partial INTEGER NOT NULL DEFAULT 0 CHECK (partial >= 0),
    failed INTEGER NOT NULL DEFAULT 0 CHECK (failed >= 0),
    excused INTEGER NOT NULL DEFAULT 0 CHECK (excused >= 0),
    cancelled INTEGER NOT NULL DEFAULT 0 CHECK (cancelled >= 0),
    -- Why its open tasks are to be cancelled: a person's request, or the policy cancel_job after a failure.
    stopping TEXT CHECK (stopping IN ('requested', 'failure')),
    cancel_us INTEGER,
    cancel_actor TEXT,
    cancel_text TEXT,
    UNIQUE (organization, id),
    CHECK ((open = 0) = (state NOT IN ('pending', 'running'))),
    CHECK ((finished_us IS NULL) = (open > 0)),
    CHECK (open + succeeded + partial + failed + excused + cancelled = total)
) STRICT;
CREATE INDEX perdure_jobs_by_state ON perdure_jobs (organization, state, j);
CREATE INDEX perdure_jobs_finished ON perdure_jobs (state, finished_us) WHERE finished_us IS NOT NULL;
CREATE INDEX perdure_jobs_stopping ON perdure_jobs (j) WHERE stopping IS NOT NULL AND open > 0;

CREATE TABLE perdure_tasks (
    n INTEGER PRIMARY KEY,
    organization TEXT NOT NULL,
    id TEXT NOT NULL,
    lane INTEGER NOT NULL REFERENCES perdure_lanes,
    job INTEGER REFERENCES perdure_jobs,
    name TEXT,
    payload BLOB,
    encoding TEXT NOT NULL,
    redacted_us INTEGER,
    principal TEXT NOT NULL,
    initiator TEXT NOT NULL,
    created_us INTEGER NOT NULL,
    run_at_us INTEGER,
    ttl_us INTEGER,
    execution_limit_us INTEGER NOT NULL,
    timeout_us INTEGER,
    lease_us INTEGER NOT NULL,
    max_attempts INTEGER NOT NULL,
    max_losses INTEGER NOT NULL,
    on_loss TEXT NOT NULL CHECK (on_loss = 'retry' OR on_loss = 'count' OR on_loss = 'fail'),
    parents INTEGER NOT NULL DEFAULT 0,
    rule TEXT NOT NULL DEFAULT 'all_succeeded'
        CHECK (rule = 'all_succeeded' OR rule = 'all_done' OR rule = 'any_succeeded' OR rule = 'any_failed'),
    if_failed TEXT NOT NULL DEFAULT 'fail'
        CHECK (if_failed = 'fail' OR if_failed = 'continue' OR if_failed = 'cancel_job'),
    idempotency_key TEXT,
    request_hash TEXT,
    retry TEXT,
    options TEXT,
    UNIQUE (organization, id),
    CHECK ((payload IS NULL) = (redacted_us IS NOT NULL))
) STRICT;
CREATE INDEX perdure_tasks_by_job ON perdure_tasks (job, n) WHERE job IS NOT NULL;

-- One narrow row per unfinished task, with all that changes.
CREATE TABLE perdure_live (
    n INTEGER PRIMARY KEY REFERENCES perdure_tasks,
    organization TEXT NOT NULL,
    lane INTEGER NOT NULL,
    job INTEGER,
    state TEXT NOT NULL CHECK (
        state = 'queued' OR state = 'leased' OR state = 'running' OR state = 'pending' OR state = 'retrying'
        OR state = 'cancelling'
    ),
    seq INTEGER,
    due_us INTEGER NOT NULL,
    expires_us INTEGER,
    deadline_us INTEGER,
    generation INTEGER NOT NULL DEFAULT 1,
    failures INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    snoozes INTEGER NOT NULL DEFAULT 0,
    hand_backs INTEGER NOT NULL DEFAULT 0,
    -- Dependencies: parents still open, and how the others ended. excused is the part of bad whose edge continues.
    waits INTEGER NOT NULL DEFAULT 0 CHECK (waits >= 0),
    good INTEGER NOT NULL DEFAULT 0,
    bad INTEGER NOT NULL DEFAULT 0,
    excused INTEGER NOT NULL DEFAULT 0,
    -- The live attempt.
    fence INTEGER NOT NULL DEFAULT 0,
    attempt_id TEXT,
    token TEXT,
    worker TEXT,
    queued_us INTEGER,
    leased_us INTEGER,
    started_us INTEGER,
    lease_ends_us INTEGER,
    -- The first cancel request.
    cancel_us INTEGER,
    cancel_ends_us INTEGER,
    cancel_actor TEXT,
    cancel_reason TEXT,
    cancel_text TEXT,
    cancel_note TEXT,
    cancel_delivered_us INTEGER,
    last_error TEXT,
    CHECK ((state = 'leased' OR state = 'running' OR state = 'cancelling') = (attempt_id IS NOT NULL)),
    CHECK ((attempt_id IS NULL) = (token IS NULL) AND (attempt_id IS NULL) = (lease_ends_us IS NULL)),
    CHECK ((state = 'queued') = (seq IS NOT NULL)),
    CHECK (state <> 'queued' OR waits = 0),
    CHECK (state <> 'running' OR started_us IS NOT NULL),
    CHECK ((state = 'cancelling') = (cancel_ends_us IS NOT NULL))
) STRICT;
CREATE INDEX perdure_live_ready ON perdure_live (lane, seq) WHERE state = 'queued';
CREATE INDEX perdure_live_due ON perdure_live (due_us) WHERE state IN ('pending', 'retrying') AND waits = 0;
CREATE INDEX perdure_live_ttl ON perdure_live (expires_us) WHERE expires_us IS NOT NULL AND state IN ('pending', 'queued', 'retrying');
CREATE INDEX perdure_live_deadline ON perdure_live (deadline_us) WHERE deadline_us IS NOT NULL AND state IN ('pending', 'queued', 'retrying');
CREATE INDEX perdure_live_held ON perdure_live (worker) WHERE attempt_id IS NOT NULL;
CREATE INDEX perdure_live_waiting ON perdure_live (organization, state, n) WHERE state IN ('pending', 'retrying');
CREATE INDEX perdure_live_by_job ON perdure_live (job, n) WHERE job IS NOT NULL;

-- One row when a task has ended.
CREATE TABLE perdure_ends (
    n INTEGER PRIMARY KEY REFERENCES perdure_tasks,
    organization TEXT NOT NULL,
    lane INTEGER NOT NULL,
    job INTEGER,
    state TEXT NOT NULL
        CHECK (
            state = 'succeeded' OR state = 'partially_succeeded' OR state = 'failed' OR state = 'dead_lettered'
            OR state = 'cancelled' OR state = 'expired'
        ),
    reason TEXT NOT NULL,
    actor TEXT NOT NULL,
    finished_us INTEGER NOT NULL,
    generation INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    fence INTEGER NOT NULL,
    attempt_id TEXT,
    due_us INTEGER NOT NULL,
    expires_us INTEGER,
    deadline_us INTEGER,
    result BLOB,
    result_encoding TEXT,
    error TEXT,
    summary TEXT,
    cancel_us INTEGER,
    cancel_actor TEXT,
    cancel_reason TEXT,
    cancel_text TEXT,
    cancel_note TEXT,
    cancel_delivered_us INTEGER,
    -- Since when it was queued, where it ended without an attempt.
    queued_us INTEGER,
    discarded_us INTEGER
) STRICT;
CREATE INDEX perdure_ends_by_state ON perdure_ends (organization, state, finished_us, n);
CREATE INDEX perdure_ends_alone ON perdure_ends (lane, state, finished_us, n) WHERE job IS NULL;

-- How far the results of a lane's ends have been removed ahead of their tasks.
CREATE TABLE perdure_results_removed (
    lane INTEGER NOT NULL REFERENCES perdure_lanes,
    state TEXT NOT NULL,
    finished_us INTEGER NOT NULL,
    task INTEGER NOT NULL,
    PRIMARY KEY (lane, state)
) STRICT, WITHOUT ROWID;

-- One row per claim that has ended; the live one is in live.
CREATE TABLE perdure_attempts (
    n INTEGER NOT NULL REFERENCES perdure_tasks,
    fence INTEGER NOT NULL,
    id TEXT NOT NULL,
    generation INTEGER NOT NULL,
    number INTEGER NOT NULL,
    worker TEXT NOT NULL,
    build TEXT,
    state TEXT NOT NULL CHECK (
        state = 'succeeded' OR state = 'failed' OR state = 'lost' OR state = 'cancelled' OR state = 'snoozed'
        OR state = 'released'
    ),
    reason TEXT NOT NULL,
    task_state TEXT NOT NULL,
    actor TEXT NOT NULL,
    queued_us INTEGER,
    leased_us INTEGER NOT NULL,
    started_us INTEGER,
    ended_us INTEGER NOT NULL,
    due_us INTEGER,
    error TEXT,
    digest TEXT NOT NULL,
    PRIMARY KEY (n, fence)
) STRICT, WITHOUT ROWID;

-- What happened and cannot be read from the rows above.
CREATE TABLE perdure_events (
    e INTEGER PRIMARY KEY,
    organization TEXT NOT NULL,
    n INTEGER,
    job INTEGER,
    at_us INTEGER NOT NULL,
    generation INTEGER NOT NULL DEFAULT 1,
    type TEXT NOT NULL,
    actor TEXT NOT NULL,
    initiator TEXT,
    data TEXT
) STRICT;
CREATE INDEX perdure_events_by_task ON perdure_events (n, e) WHERE n IS NOT NULL;
CREATE INDEX perdure_events_by_job ON perdure_events (job, e) WHERE job IS NOT NULL;

CREATE TABLE perdure_edges (
    parent INTEGER NOT NULL REFERENCES perdure_tasks,
    child INTEGER NOT NULL REFERENCES perdure_tasks,
    policy TEXT NOT NULL CHECK (policy IN ('fail', 'continue')),
    PRIMARY KEY (parent, child),
    CHECK (parent <> child)
) STRICT, WITHOUT ROWID;
CREATE INDEX perdure_edges_by_child ON perdure_edges (child, parent);

-- Ended tasks whose children have not been looked at yet.
CREATE TABLE perdure_frontier (
    n INTEGER PRIMARY KEY REFERENCES perdure_tasks,
    good INTEGER NOT NULL CHECK (good IN (0, 1))
) STRICT;

CREATE TABLE perdure_progress (
    n INTEGER PRIMARY KEY REFERENCES perdure_tasks,
    phase TEXT,
    done INTEGER,
    total INTEGER,
    succeeded INTEGER,
    failed INTEGER
) STRICT;

CREATE TABLE perdure_checkpoints (
    n INTEGER PRIMARY KEY REFERENCES perdure_tasks,
    generation INTEGER NOT NULL,
    value TEXT NOT NULL,
    written_us INTEGER NOT NULL
) STRICT;

CREATE TABLE perdure_parts (
    n INTEGER NOT NULL REFERENCES perdure_tasks,
    attempt_id TEXT NOT NULL,
    sequence INTEGER NOT NULL CHECK (sequence >= 1),
    key TEXT NOT NULL,
    named INTEGER NOT NULL CHECK (named IN (0, 1)),
    sha256 TEXT NOT NULL,
    final INTEGER NOT NULL CHECK (final IN (0, 1)),
    data BLOB NOT NULL,
    encoding TEXT NOT NULL,
    written_us INTEGER NOT NULL,
    PRIMARY KEY (n, attempt_id, sequence)
) STRICT;
CREATE UNIQUE INDEX perdure_parts_named ON perdure_parts (n, key) WHERE named = 1;
CREATE UNIQUE INDEX perdure_parts_unnamed ON perdure_parts (n, attempt_id, key) WHERE named = 0;

-- Proof that an attempt's effects were committed together with its result.
CREATE TABLE perdure_receipts (
    n INTEGER NOT NULL REFERENCES perdure_tasks,
    attempt_id TEXT NOT NULL,
    partly INTEGER NOT NULL CHECK (partly IN (0, 1)),
    result BLOB NOT NULL,
    encoding TEXT NOT NULL,
    summary TEXT,
    digest TEXT NOT NULL,
    written_us INTEGER NOT NULL,
    PRIMARY KEY (n, attempt_id)
) STRICT, WITHOUT ROWID;

-- Outcomes of the single items of a pipeline.
CREATE TABLE perdure_items (
    n INTEGER NOT NULL REFERENCES perdure_tasks,
    attempt_id TEXT NOT NULL,
    ref TEXT NOT NULL,
    entity_kind TEXT,
    action TEXT CHECK (action IN ('create', 'update', 'noop', 'skip')),
    identifier TEXT,
    outcome TEXT NOT NULL,
    error TEXT,
    details TEXT,
    PRIMARY KEY (n, attempt_id, ref)
) STRICT, WITHOUT ROWID;

CREATE TABLE perdure_idempotency (
    organization TEXT NOT NULL,
    principal TEXT NOT NULL,
    what TEXT NOT NULL CHECK (what IN ('task', 'job')),
    key TEXT NOT NULL,
    id TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    expires_us INTEGER NOT NULL,
    PRIMARY KEY (organization, principal, what, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX perdure_idempotency_by_expiry ON perdure_idempotency (expires_us);

CREATE TABLE perdure_definitions (
    organization TEXT NOT NULL,
    type TEXT NOT NULL CHECK (type IN ('queue', 'organization', 'kind')),
    name TEXT NOT NULL,
    version INTEGER NOT NULL CHECK (version >= 1),
    document TEXT NOT NULL CHECK (json_valid(document)),
    actor TEXT NOT NULL,
    updated_us INTEGER NOT NULL,
    PRIMARY KEY (organization, type, name)
) STRICT;
CREATE INDEX perdure_definitions_with_depth ON perdure_definitions (organization, type, name)
    WHERE type IN ('queue', 'organization') AND document ->> '$.depth' IS NOT NULL;
CREATE INDEX perdure_definitions_paused ON perdure_definitions (organization, type, name)
    WHERE type IN ('queue', 'organization') AND document ->> '$.paused';

CREATE TABLE perdure_workers (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    version TEXT NOT NULL,
    build TEXT NOT NULL,
    kinds TEXT NOT NULL CHECK (json_valid(kinds)),
    queues TEXT NOT NULL CHECK (json_valid(queues)),
    organizations TEXT NOT NULL CHECK (json_valid(organizations)),
    capabilities TEXT NOT NULL CHECK (json_valid(capabilities)),
    capacity INTEGER NOT NULL CHECK (capacity >= 0),
    ordered TEXT NOT NULL DEFAULT 'work' CHECK (ordered IN ('work', 'pause', 'drain', 'revoke')),
    registered_us INTEGER NOT NULL,
    seen_us INTEGER NOT NULL,
    left_us INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX perdure_workers_by_seen ON perdure_workers (seen_us);

-- How many tasks of a lane are in a state, and how many attempts of it have ended ('attempts'); kept in the transaction
-- that changes them. Lane 0 counts the places taken in line so far: at the end ('seq') and in front ('front'). One small
-- table, so that a commit writes one page for all of them.
CREATE TABLE perdure_counts (
    lane INTEGER NOT NULL,
    state TEXT NOT NULL,
    count INTEGER NOT NULL CHECK (count >= 0),
    PRIMARY KEY (lane, state)
) STRICT, WITHOUT ROWID;

INSERT INTO perdure_meta (key, value) VALUES ('losses_suspended_until_us', 0);
INSERT INTO perdure_counts (lane, state, count) VALUES (0, 'seq', 0), (0, 'front', 0);
