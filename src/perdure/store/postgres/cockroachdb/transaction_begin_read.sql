-- Begin a transaction that reads one snapshot and cannot write.
BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY
