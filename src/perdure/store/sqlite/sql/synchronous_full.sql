-- Commits from here on are on the disk before they answer.
PRAGMA synchronous = FULL
