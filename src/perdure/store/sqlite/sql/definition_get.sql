-- One document.
SELECT organization, type, name, version, document FROM perdure_definitions AS definitions
WHERE organization = :organization AND type = :type AND name = :name
