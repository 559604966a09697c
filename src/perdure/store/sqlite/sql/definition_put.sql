-- Store a document over exactly the version that was read (0: there was none); no row when another one is there.
-- Versions begin with the instant, so that none comes again after a delete. Who has paused it first is kept until it is resumed.
INSERT INTO perdure_definitions AS definitions (
    organization, type, name, version, document, actor, updated_us, paused_us, paused_by
)
SELECT
    :organization, :type, :name, :now, :document, :actor, :now, iif(:document ->> '$.paused', :now, NULL),
    iif(:document ->> '$.paused', :actor, NULL)
WHERE :version = 0 OR EXISTS (
    SELECT 1 FROM perdure_definitions AS stored
    WHERE organization = :organization AND type = :type AND name = :name AND version = :version
)
ON CONFLICT (organization, type, name) DO UPDATE
SET version = version + 1, document = excluded.document, actor = excluded.actor, updated_us = excluded.updated_us,
    paused_us = iif(
        definitions.document ->> '$.paused' AND excluded.paused_us IS NOT NULL,
        coalesce(definitions.paused_us, definitions.updated_us), excluded.paused_us
    ),
    paused_by = iif(
        definitions.document ->> '$.paused' AND excluded.paused_us IS NOT NULL,
        coalesce(definitions.paused_by, definitions.actor), excluded.paused_by
    )
WHERE version = :version
RETURNING version
