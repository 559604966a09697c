"""The operations: one a file. Success reads nothing, failure reads once. The only caller of a store."""
