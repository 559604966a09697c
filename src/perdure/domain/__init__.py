"""The rules of the lifecycle: pure values and decisions. Standard library and `errors` only."""
