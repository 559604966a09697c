-- Breakers of kinds: which have changed, and how the attempts ended that they count.

-- One row for each breaker that has ever changed; until_us is when an open one lets probes through.
CREATE TABLE perdure_breakers (
    organization TEXT NOT NULL,
    kind TEXT NOT NULL,
    -- The instant of its last change, which names the outcomes that are counted since.
    since_us INTEGER NOT NULL,
    until_us INTEGER,
    -- As until_us, as long as nobody has told that this time has come.
    tell_us INTEGER,
    -- What was counted at its last change, and how often it has opened.
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    trips INTEGER NOT NULL,
    event TEXT NOT NULL CHECK (event IN ('too_many_failed', 'probe_failed', 'probes_passed', 'trip', 'reset')),
    actor TEXT NOT NULL,
    PRIMARY KEY (organization, kind),
    CHECK ((until_us IS NULL) = (event IN ('probes_passed', 'reset'))),
    CHECK (tell_us IS NULL OR tell_us = until_us)
) STRICT, WITHOUT ROWID;
CREATE INDEX perdure_breakers_open ON perdure_breakers (organization, kind) WHERE until_us IS NOT NULL;
CREATE INDEX perdure_breakers_to_tell ON perdure_breakers (tell_us) WHERE tell_us IS NOT NULL;

-- How many attempts of a kind have ended since its breaker's last change, by parts of its window and by who wrote.
CREATE TABLE perdure_outcomes (
    organization TEXT NOT NULL,
    kind TEXT NOT NULL,
    since_us INTEGER NOT NULL,
    bucket_us INTEGER NOT NULL,
    writer INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    PRIMARY KEY (organization, kind, since_us, bucket_us, writer),
    CHECK (failures BETWEEN 0 AND attempts)
) STRICT, WITHOUT ROWID;
CREATE INDEX perdure_outcomes_by_time ON perdure_outcomes (bucket_us);

CREATE INDEX perdure_definitions_of_breakers ON perdure_definitions (organization, name)
    WHERE type = 'kind' AND document ->> '$.breaker' IS NOT NULL;
