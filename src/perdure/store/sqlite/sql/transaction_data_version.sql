-- A number that changes when another connection has committed; own commits leave it alone.
PRAGMA data_version
