-- Begin a transaction that writes, each of its statements on what is committed by then.
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE
