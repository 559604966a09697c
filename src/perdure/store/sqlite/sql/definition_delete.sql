-- Remove a document; a row when there was one.
DELETE FROM perdure_definitions AS definitions WHERE organization = :organization AND type = :type AND name = :name AND (:version IS NULL OR version = :version) RETURNING 1
