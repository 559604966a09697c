-- Begin a transaction that writes as if it were alone.
BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE
