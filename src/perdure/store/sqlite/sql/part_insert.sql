-- Store one part of a result.
INSERT INTO perdure_parts (n, attempt_id, sequence, key, named, sha256, final, data, encoding, written_us)
VALUES (:n, :attempt, :sequence, :key, :named, :sha256, :final, :data, :encoding, :now)
