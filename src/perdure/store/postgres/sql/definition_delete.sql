-- Remove a document; a row when there was one.
DELETE FROM perdure_definitions AS definitions
WHERE organization = %(organization)s::text AND type = %(type)s::text AND name = %(name)s::text AND (%(version)s::bigint IS NULL OR version = %(version)s::bigint)
RETURNING 1
