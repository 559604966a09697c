-- What handlers logged, kept with their tasks.

CREATE TABLE perdure_logs (
    n INTEGER NOT NULL REFERENCES perdure_tasks,
    fence INTEGER NOT NULL,
    sequence INTEGER NOT NULL CHECK (sequence >= 1),
    attempt_id TEXT NOT NULL,
    at_us INTEGER NOT NULL,
    level TEXT NOT NULL CHECK (level IN ('debug', 'info', 'warning', 'error', 'critical')),
    message TEXT NOT NULL,
    dropped INTEGER NOT NULL CHECK (dropped >= 0),
    PRIMARY KEY (n, fence, sequence)
) STRICT;
