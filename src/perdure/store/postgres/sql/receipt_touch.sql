-- Let no transaction end an attempt that began before its receipt was committed: one that reads as of its beginning would
-- not see the receipt, but may not change what has changed since.
UPDATE perdure_live AS live SET fence = live.fence WHERE n = %(n)s::bigint
