-- Store a document over exactly the version that was read (0: there was none); no row when another one is there.
-- Versions begin with the instant, so that none comes again after a delete.
INSERT INTO perdure_definitions (organization, type, name, version, document, actor, updated_us)
SELECT :organization, :type, :name, :now, :document, :actor, :now
WHERE :version = 0 OR EXISTS (
    SELECT 1 FROM perdure_definitions AS definitions
    WHERE organization = :organization AND type = :type AND name = :name AND version = :version
)
ON CONFLICT (organization, type, name) DO UPDATE
SET version = version + 1, document = excluded.document, actor = excluded.actor, updated_us = excluded.updated_us
WHERE version = :version
RETURNING version
