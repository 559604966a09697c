-- Count one task into a lane's queued ones, and take one place in line.
INSERT INTO perdure_counts (lane, state, count)
VALUES (?1, 'queued', 1), (0, 'seq', 1)
ON CONFLICT DO UPDATE SET count = count + 1
