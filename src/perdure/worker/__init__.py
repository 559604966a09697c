"""The process that runs handlers."""
