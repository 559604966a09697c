-- Remove a document; a row when there was one.
DELETE FROM definitions WHERE organization = :organization AND type = :type AND name = :name RETURNING 1
