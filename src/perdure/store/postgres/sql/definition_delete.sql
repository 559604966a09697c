-- Remove a document; a row when there was one.
DELETE FROM perdure_definitions AS definitions
WHERE organization = %(organization)s::text AND type = %(type)s::text AND name = %(name)s::text
RETURNING 1
