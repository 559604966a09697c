-- Note where rows come from.
INSERT INTO perdure_meta (key, value) VALUES ('copy_origin', %(origin)s::text)
