-- One document.
SELECT organization, type, name, version, document FROM definitions
WHERE organization = :organization AND type = :type AND name = :name
