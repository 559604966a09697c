-- Note the start of the server, unless another transaction has noted one since.
INSERT INTO perdure_meta AS meta (key, value) VALUES ('server_start_us', %(start_us)s::text)
ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE meta.value = %(noted)s::text
