"""perdure: a durable task orchestrator."""
