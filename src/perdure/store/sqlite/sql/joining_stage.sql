-- Stage tasks: rows of number, lane, state.
INSERT INTO joining (n, lane, from_state)
SELECT value ->> 0, value ->> 1, value ->> 2
FROM json_each(:batch)
