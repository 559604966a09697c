-- Begin to write. The write lock is had at once, so nothing read inside can be outdated at the commit.
BEGIN IMMEDIATE
