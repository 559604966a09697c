"""What is told about the running system: observers that are handed in, metrics for Prometheus, log lines."""
