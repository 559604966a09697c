-- Write the live row of one new task that joins its lane at once: number, organization, lane, place in line, now, TTL.
INSERT INTO perdure_live (n, organization, lane, state, seq, due_us, expires_us, queued_us)
VALUES (?1, ?2, ?3, 'queued', ?4, ?5, ?5 + ?6, ?5)
