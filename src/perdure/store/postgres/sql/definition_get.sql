-- One document.
SELECT organization, type, name, version, document::text
FROM perdure_definitions AS definitions
WHERE organization = %(organization)s::text AND type = %(type)s::text AND name = %(name)s::text
