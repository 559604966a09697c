-- Store one part of a result.
INSERT INTO perdure_parts (n, attempt_id, sequence, key, named, sha256, final, data, encoding, written_us)
VALUES (
    %(n)s::bigint, %(attempt)s::text, %(sequence)s::bigint, %(key)s::text, %(named)s::bigint = 1, %(sha256)s::text,
    %(final)s::bigint = 1, %(data)s::bytea, %(encoding)s::text, %(now)s::bigint
)
