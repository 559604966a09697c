"""The systems that are measured, each a program with the same commands, run in its own environment."""
