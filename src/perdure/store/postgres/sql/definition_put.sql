-- Store a document over exactly the version that was read (0: there was none); no row when another one is there.
-- Versions begin with the instant, so that none comes again after a delete.
INSERT INTO perdure_definitions AS definitions (organization, type, name, version, document, actor, updated_us)
SELECT
    %(organization)s::text, %(type)s::text, %(name)s::text, %(now)s::bigint, %(document)s::json, %(actor)s::text,
    %(now)s::bigint
WHERE %(version)s::bigint = 0 OR EXISTS (
    SELECT 1
    FROM perdure_definitions AS stored
    WHERE stored.organization = %(organization)s::text AND stored.type = %(type)s::text
    AND stored.name = %(name)s::text AND stored.version = %(version)s::bigint
)
ON CONFLICT (organization, type, name) DO UPDATE
SET version = definitions.version + 1,
    document = excluded.document,
    actor = excluded.actor,
    updated_us = excluded.updated_us
WHERE definitions.version = %(version)s::bigint
RETURNING version
