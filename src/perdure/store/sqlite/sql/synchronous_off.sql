-- Commits from here on may be undone, and the file damaged, by a power loss. For tests only.
PRAGMA synchronous = OFF
