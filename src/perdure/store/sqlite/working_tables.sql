-- Working tables of the writing connection: what one operation has staged. Empty between operations, never on disk.

CREATE TEMP TABLE IF NOT EXISTS settling (
    n INTEGER PRIMARY KEY,
    i INTEGER NOT NULL,
    lane INTEGER NOT NULL,
    job INTEGER,
    from_state TEXT NOT NULL,
    state TEXT NOT NULL,
    ended INTEGER NOT NULL,
    attempt_state TEXT NOT NULL,
    reason TEXT NOT NULL,
    charge TEXT NOT NULL,
    delay_us INTEGER NOT NULL,
    clears_ttl INTEGER NOT NULL,
    result BLOB,
    result_encoding TEXT,
    error TEXT,
    summary TEXT,
    digest TEXT NOT NULL,
    actor TEXT NOT NULL,
    ran_us INTEGER,
    told_us INTEGER,
    gated INTEGER NOT NULL,
    leased_us INTEGER
);

-- Waiting tasks that end without an attempt.
CREATE TEMP TABLE IF NOT EXISTS ending (
    n INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    job INTEGER,
    from_state TEXT NOT NULL,
    state TEXT NOT NULL,
    reason TEXT NOT NULL,
    actor TEXT NOT NULL,
    error TEXT,
    cancel_text TEXT,
    cancel_note TEXT
);

-- Tasks of jobs that have ended in this transaction; children and counters of their jobs follow.
CREATE TEMP TABLE IF NOT EXISTS ended (
    n INTEGER PRIMARY KEY,
    job INTEGER,
    good INTEGER NOT NULL
);

CREATE TEMP TABLE IF NOT EXISTS touched (
    child INTEGER PRIMARY KEY,
    good INTEGER NOT NULL,
    bad INTEGER NOT NULL,
    excused INTEGER NOT NULL
);

-- Tasks that join their lane in this transaction, in order.
CREATE TEMP TABLE IF NOT EXISTS joining (
    position INTEGER PRIMARY KEY,
    n INTEGER NOT NULL UNIQUE,
    lane INTEGER NOT NULL,
    from_state TEXT NOT NULL
);
