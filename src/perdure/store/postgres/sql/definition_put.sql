-- Store a document over exactly the version that was read (0: there was none); no row when another one is there.
-- Versions begin with the instant, so that none comes again after a delete. Who has paused it first is kept until it is resumed.
INSERT INTO perdure_definitions AS definitions (
    organization, type, name, version, document, actor, updated_us, paused_us, paused_by
)
SELECT
    %(organization)s::text, %(type)s::text, %(name)s::text, %(now)s::bigint, %(document)s::json, %(actor)s::text,
    %(now)s::bigint, CASE WHEN %(document)s::json ->> 'paused' = 'true' THEN %(now)s::bigint END,
    CASE WHEN %(document)s::json ->> 'paused' = 'true' THEN %(actor)s::text END
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
    updated_us = excluded.updated_us,
    paused_us = CASE
        WHEN definitions.document ->> 'paused' = 'true' AND excluded.paused_us IS NOT NULL
        THEN coalesce(definitions.paused_us, definitions.updated_us)
        ELSE excluded.paused_us
    END,
    paused_by = CASE
        WHEN definitions.document ->> 'paused' = 'true' AND excluded.paused_us IS NOT NULL
        THEN coalesce(definitions.paused_by, definitions.actor)
        ELSE excluded.paused_by
    END
WHERE definitions.version = %(version)s::bigint
RETURNING version
