"""The same faults for perdure and its peers."""
