"""A program for each system: its schema, a worker, a client; run in the system's own environment."""
