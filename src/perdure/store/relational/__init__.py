"""The operations and views of stores that speak SQL. Each store brings its own statements, by these names."""
