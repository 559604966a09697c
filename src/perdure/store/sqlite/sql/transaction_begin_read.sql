-- Begin to read: everything until the end is read from one snapshot.
BEGIN
