-- Breakers of kinds: which have changed, and how the attempts ended that they count.

-- One row for each breaker that has ever changed; until_us is when an open one lets probes through.
CREATE TABLE perdure_breakers (
    organization text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    -- The instant of its last change, which names the outcomes that are counted since.
    since_us bigint NOT NULL,
    until_us bigint,
    -- As until_us, as long as nobody has told that this time has come.
    tell_us bigint,
    -- What was counted at its last change, and how often it has opened.
    attempts bigint NOT NULL,
    failures bigint NOT NULL,
    trips bigint NOT NULL,
    event text NOT NULL CHECK (event IN ('too_many_failed', 'probe_failed', 'probes_passed', 'trip', 'reset')),
    actor text NOT NULL,
    PRIMARY KEY (organization, kind),
    CHECK ((until_us IS NULL) = (event IN ('probes_passed', 'reset'))),
    CHECK (tell_us IS NULL OR tell_us = until_us)
);
CREATE INDEX perdure_breakers_open ON perdure_breakers (organization, kind) WHERE until_us IS NOT NULL;
CREATE INDEX perdure_breakers_to_tell ON perdure_breakers (tell_us) WHERE tell_us IS NOT NULL;

-- How many attempts of a kind have ended since its breaker's last change, by parts of its window and by who wrote, so
-- that no two transactions wait for a row of each other.
CREATE TABLE perdure_outcomes (
    organization text COLLATE "C" NOT NULL,
    kind text COLLATE "C" NOT NULL,
    since_us bigint NOT NULL,
    bucket_us bigint NOT NULL,
    writer bigint NOT NULL,
    attempts bigint NOT NULL,
    failures bigint NOT NULL,
    PRIMARY KEY (organization, kind, since_us, bucket_us, writer),
    CHECK (failures BETWEEN 0 AND attempts)
) WITH (
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_insert_threshold = -1
);
CREATE INDEX perdure_outcomes_by_time ON perdure_outcomes (bucket_us);

CREATE INDEX perdure_definitions_of_breakers ON perdure_definitions (organization, name)
    WHERE type = 'kind' AND document ->> 'breaker' IS NOT NULL;
