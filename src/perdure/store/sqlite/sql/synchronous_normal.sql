-- Commits from here on do not wait for the disk: a power loss may undo them, never damage the file.
PRAGMA synchronous = NORMAL
