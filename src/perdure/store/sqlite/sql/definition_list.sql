-- All documents of a type, by name.
SELECT organization, type, name, version, document FROM perdure_definitions AS definitions
WHERE organization = :organization AND type = :type
ORDER BY name
